import { readFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parseCidr } from '../../../src/core/index.ts';
import { nftFamily } from '../../../src/netlink/nftables/index.ts';
import { sampleNode, samplePlan, samplePort } from '../../samples/sample-plan.ts';
import { createLab, type LabNode, type Pod, removeAll, tally } from '../lab.ts';
import { patient } from '../patience.ts';
import { dataplaneIn, endpointOf, FAMILIES } from './fixtures.ts';

// What only this mode does, with real packets. What all modes do is tested with the dataplanes in common.

afterAll(removeAll);

let node: LabNode;
let web: Pod[];
let client: Pod;

beforeAll(async () => {
  node = createLab().addNode({ name: 'node-1' });
  web = ['web-1', 'web-2', 'web-3', 'web-4', 'web-5'].map((name) => node.addPod(name));
  client = node.addPod('client');
  for (const pod of web) await pod.serve({ port: 8080 });
});

describe.each(FAMILIES)('%s', (family) => {
  const v4 = family === 'IPv4';
  const vip = (n: number) => (v4 ? `10.96.1.${n}` : `fd00:96::1:${n}`);
  const remote = () => web.map((pod) => endpointOf(pod, family));
  const ofFamily = v4 ? [] : ['-f', 'ipv6'];
  /** As the agent does with flows that its rules do not translate. */
  const forget = (destination: string) => node.namespace.run('conntrack', '-D', ...ofFamily, '-d', destination);

  it('refuses cluster IPs on ports no Service has, and drops what no Service has of a ServiceCIDR', async () => {
    const serviceCidrs = [parseCidr(v4 ? '10.96.0.0/16' : 'fd00:96::/64')];
    const plan = samplePlan(family, sampleNode({ serviceCidrs }), [
      samplePort({ name: 'shop/web', clusterIp: vip(1), remote: remote() }),
    ]);
    const dataplane = dataplaneIn(node.namespace, family);
    await dataplane.resync(plan);
    expect(await client.connect({ ip: vip(1), port: 80 })).toMatchObject({ kind: 'answered' });
    expect(await client.connect({ ip: vip(1), port: 81 })).toMatchObject({ kind: 'refused' });
    expect(await client.connect({ ip: vip(2), port: 80 }, { timeoutMs: 400 })).toMatchObject({ kind: 'timeout' });
    expect(await node.connect({ ip: vip(2), port: 80 }, { timeoutMs: 400 })).toMatchObject({ kind: 'timeout' });
    // The ServiceCIDR goes: the address is nothing special any more.
    await dataplane.resync({ ...plan, node: sampleNode() });
    const listing = node.namespace.run('nft', 'list', 'chain', nftFamily(family), 'nodeplane', 'check-cluster-ips');
    expect(listing).not.toContain('drop');
    dataplane.close();
  });

  it('refuses no connection that was begun before its Service was there, only ports that are not served', async () => {
    const [served, other] = [
      { ip: vip(3), port: 80 },
      { ip: vip(3), port: 81 },
    ];
    const dataplane = dataplaneIn(node.namespace, family);
    const plan = samplePlan(family, sampleNode(), []);
    await dataplane.resync(plan);
    // Sent again after a second, and after three.
    const early = client.connect(served, { timeoutMs: patient(15_000) });
    const tracked = () => node.namespace.run('conntrack', '-L', ...ofFamily, '-d', served.ip);
    await expect.poll(tracked).toContain('SYN_SENT');
    await dataplane.resync(
      samplePlan(family, sampleNode(), [samplePort({ name: 'shop/early', clusterIp: vip(3), remote: remote() })]),
    );
    expect(await client.connect(other)).toMatchObject({ kind: 'refused' });
    expect(await Promise.race([early, delay(patient(2500), 'waits')])).toBe('waits');
    forget(served.ip);
    expect(await early).toMatchObject({ kind: 'answered' });
    dataplane.close();
  });

  it('serves again after somebody put its table to sleep', async () => {
    const plan = samplePlan(family, sampleNode(), [
      samplePort({ name: 'shop/web', clusterIp: vip(1), remote: remote() }),
    ]);
    const dataplane = dataplaneIn(node.namespace, family);
    await dataplane.resync(plan);
    node.namespace.run('nft', `add table ${nftFamily(family)} nodeplane { flags dormant; }`);
    expect(await client.connect({ ip: vip(1), port: 80 }, { timeoutMs: 400 })).not.toMatchObject({ kind: 'answered' });
    // Nobody answers what was let through, nor who gets the same port later.
    forget(vip(1));
    expect(await dataplane.verify()).toMatchObject([{ object: 'table nodeplane', theirs: ['flags dormant;'] }]);
    await dataplane.resync(plan);
    expect(await client.connect({ ip: vip(1), port: 80 })).toMatchObject({ kind: 'answered' });
    dataplane.close();
  });

  it.each([3, 5])('draws evenly among %i endpoints in more slots', async (count) => {
    const port = samplePort({ name: 'shop/web', clusterIp: vip(1), remote: remote().slice(0, count) });
    const dataplane = dataplaneIn(node.namespace, family);
    await dataplane.resync(samplePlan(family, sampleNode(), [port]));
    const tries = 1500;
    const { answers, failures } = tally(await client.connectMany({ ip: vip(1), port: 80 }, tries));
    expect(failures).toEqual({});
    expect(Object.keys(answers)).toHaveLength(count);
    // Six standard deviations: a draw that forgets a slot, or prefers one, is further away.
    const expected = tries / count;
    const tolerance = 6 * Math.sqrt(expected * (1 - 1 / count));
    for (const times of Object.values(answers)) expect(Math.abs(times - expected)).toBeLessThan(tolerance);
    dataplane.close();
  });
});

it('answers the questions of docs/nftables.md with its commands', async () => {
  const document = readFileSync(new URL('../../../docs/nftables.md', import.meta.url), 'utf8');
  const port = samplePort({
    name: 'shop/web',
    clusterIp: '10.96.0.10',
    port: 443,
    remote: web.map((pod) => endpointOf(pod, 'IPv4')),
  });
  await dataplaneIn(node.namespace, 'IPv4').resync(samplePlan('IPv4', sampleNode(), [port]));
  const commands = [...document.matchAll(/^nft .*10\.96\.0\.10.*$/gm)].map(([line]) => line.replace(/\s+#.*$/, ''));
  expect(commands).toHaveLength(2);
  const [chain, slots] = commands.map((command) => node.namespace.run('bash', '-c', command));
  expect(chain).toContain('comment "shop/web cluster IP" : goto endpoints-8');
  expect(slots!.trim().split('\n')).toHaveLength(web.length);
});
