import { afterAll, describe, expect, it } from 'vitest';
import { sampleNode, samplePlan, samplePort } from '../../samples/sample-plan.ts';
import { createLab, removeAll } from '../lab.ts';
import { dataplaneIn, openIn } from './fixtures.ts';

afterAll(removeAll);

const VIP = '10.96.1.1';

/** What a kube-proxy in this mode has for one Service, as far as packets notice. */
const kubeProxyTable = (endpoint: string) => `
table ip kube-proxy {
  comment "rules for kube-proxy"
  map service-ips {
    type ipv4_addr . inet_proto . inet_service : verdict
    elements = { ${VIP} . tcp . 80 : goto service-web }
  }
  chain nat-prerouting {
    type nat hook prerouting priority dstnat; policy accept;
    ip daddr . meta l4proto . th dport vmap @service-ips
  }
  chain service-web {
    meta l4proto tcp dnat ip to numgen random mod 1 map { 0 : ${endpoint} . 8080 }
  }
}`;

describe('a table of kube-proxy', () => {
  it('is taken over while connections begin, and none of them fails', async () => {
    const lab = createLab();
    const node = lab.addNode({ name: 'node-1' });
    const [theirs, ours, client] = ['theirs', 'ours', 'client'].map((name) => node.addPod(name));
    await theirs!.serve({ port: 8080 });
    await ours!.serve({ port: 8080 });
    node.namespace.run('nft', kubeProxyTable(theirs!.ip()));
    const nft = openIn(node.namespace);
    const tables = () => nft.listTables('ip').map(({ name }) => name);

    const web = samplePort({ name: 'shop/web', clusterIp: VIP, local: [`${ours!.ip()}:8080`] });
    const more = Array.from({ length: 2000 }, (_, n) =>
      samplePort({ name: `many/s-${n}`, clusterIp: `10.97.${n >> 8}.${n & 255}`, remote: ['10.244.9.9:80'] }),
    );
    const plan = samplePlan('IPv4', sampleNode(), [...more, web]);
    const load = await client!.startLoad({ ip: VIP, port: 80 }, { perSecond: 400 });
    await expect.poll(async () => (await load.report()).answered).toBeGreaterThan(50);
    expect(await client!.connect({ ip: VIP, port: 80 })).toMatchObject({ kind: 'answered', by: 'theirs' });

    await dataplaneIn(node.namespace, 'IPv4').resync(plan);
    expect(tables()).toEqual(['nodeplane']);
    expect(await client!.connect({ ip: VIP, port: 80 })).toMatchObject({ kind: 'answered', by: 'ours' });
    const { answered } = await load.report();
    await expect.poll(async () => (await load.report()).answered).toBeGreaterThan(answered + 50);
    expect((await load.stop()).failures).toEqual([]);
  });

  it('of the other family stays', async () => {
    const lab = createLab();
    const node = lab.addNode({ name: 'node-1' });
    node.namespace.run('nft', 'add table ip6 kube-proxy; add table ip kube-proxy');
    await dataplaneIn(node.namespace, 'IPv4').resync(samplePlan('IPv4', sampleNode(), []));
    const nft = openIn(node.namespace);
    expect(
      nft
        .listTables()
        .map(({ family, name }) => `${family} ${name}`)
        .sort(),
    ).toEqual(['ip nodeplane', 'ip6 kube-proxy']);
  });
});
