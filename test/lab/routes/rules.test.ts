import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { parseIp } from '../../../src/core/index.ts';
import { type Agent, addRoute, type Host, type LabNode, type Pod, removeAll } from '../lab.ts';
import { patient } from '../patience.ts';
import { builtProgram } from '../programs.ts';
import { type Cluster, createCluster, FAMILIES } from './cluster.ts';

let cluster: Cluster;
let [one, two]: LabNode[] = [];
let [pod1, pod2, pod3]: Pod[] = [];
let stranger: Host;

const PORT = 8080;
const TUNNEL_PORT = 8472;
const MARK = '0x4000';

beforeAll(async () => {
  cluster = await createCluster();
  [one, two] = cluster.nodes;
  [pod1, pod2, pod3] = cluster.pods;
  stranger = cluster.lab.addClient('stranger');
  await stranger.serve({ port: PORT });
  await two!.serve({ port: PORT });
});
afterAll(removeAll);

const answers = (from: Pod, to: Pod) =>
  expect.poll(() => Promise.all(FAMILIES.map((family) => cluster.ask(from, to, family))));
const bothFrom = (from: Pod, to: Host) => FAMILIES.map((family) => `${to.name} saw ${from.ip(family)}`);
const nft = (host: Host, text: string) => host.namespace.run('nft', text);
/** The table of node-1, without what packets have brought into it. */
function table(): string {
  const text = one!.namespace.run('nft', '-s', 'list', 'table', 'inet', 'nodeplane-routes');
  return text.replace(/(set strangers-ipv[46] {[^{}]*?)\s*elements = {[^{}]*}/g, '$1');
}

/** Who a server outside pods sees when a pod of node-1 connects to it, in both families. */
function seen(by: Host): Promise<string[]> {
  return Promise.all(
    FAMILIES.map(async (family) => {
      const outcome = await pod1!.connect({ ip: by.ip(family), port: PORT }, { timeoutMs: 1000 });
      return outcome.kind === 'answered' ? `${outcome.by} saw ${outcome.source}` : outcome.kind;
    }),
  );
}

describe('--routes vxlan', () => {
  let agent: Agent;

  beforeAll(async () => {
    nft(
      pod1!,
      `table inet lab {
        chain input {
          type filter hook input priority -300;
          udp dport 9999 ip saddr ${FORGED.IPv4} counter
          udp dport 9999 ip6 saddr ${FORGED.IPv6} counter
        }
      }`,
    );
    agent = (await cluster.start('--routes', 'vxlan'))[0]!;
  });
  afterAll(() => cluster.stop());

  it('pods on other nodes see the pod', async () => {
    await answers(pod1!, pod2!).toEqual(bothFrom(pod1!, pod2!));
    await answers(pod1!, pod3!).toEqual(bothFrom(pod1!, pod3!));
  });

  /** How many forged packets have reached the pod, in both families. */
  function arrived(): number[] {
    return [...nft(pod1!, 'list chain inet lab input').matchAll(/packets (\d+)/g)].map(([, packets]) =>
      Number(packets),
    );
  }

  /** Sends node-1 a VXLAN packet with a packet to its pod inside, from a pod that does not exist. */
  function forge(from: Host, family: 'IPv4' | 'IPv6'): void {
    const mac = /link\/ether (\S+)/.exec(one!.namespace.run('ip', '-o', 'link', 'show', device(family)))![1]!;
    const frame = vxlanFrame(family, mac, pod1!.ip(family)).toString('hex');
    const script = `const s=require('dgram').createSocket('udp${family === 'IPv4' ? 4 : 6}');
      s.send(Buffer.from('${frame}','hex'),${TUNNEL_PORT},'${one!.ip(family)}',()=>s.close())`;
    from.namespace.run(process.execPath, '-e', script);
  }

  it('a forged frame reaches a pod from a node, and not from a stranger, who is told of and counted', async () => {
    for (const family of FAMILIES) forge(stranger, family);
    for (const family of FAMILIES) forge(two!, family);
    // Those of the stranger were sent first.
    await expect.poll(arrived).toEqual([1, 1]);
    await expect
      .poll(() => agent.logs().filter(({ msg }) => String(msg).includes('came from no node')), {
        timeout: patient(40_000),
      })
      .toEqual(FAMILIES.map((family) => expect.objectContaining({ family, packets: 1, sources: stranger.ip(family) })));
    for (const family of FAMILIES) {
      expect(await agent.metrics()).toContain(`nodeplane_routes_refused_packets_total{ip_family="${family}"} 1`);
    }
  });

  it('a pod cannot borrow the address of its node', async () => {
    const before = arrived();
    for (const family of FAMILIES) forge(pod2!, family);
    await expect.poll(() => nft(two!, 'list set inet nodeplane-routes strangers-ipv4')).toContain(pod2!.ip('IPv4'));
    expect(nft(two!, 'list set inet nodeplane-routes strangers-ipv6')).toContain(pod2!.ip('IPv6'));
    expect(arrived()).toEqual(before);
  });

  it('the tunnel’s own packets are not tracked, not translated, and without the mark of what is inside', async () => {
    // Somebody marks all packets of pods for masquerading, and masquerades before the Services part does.
    nft(
      one!,
      `table inet foreign {
        chain marking {
          type filter hook forward priority -150
          iifname "cni0" meta mark set mark or ${MARK}
        }
        chain before {
          type filter hook output priority -310
          udp dport ${TUNNEL_PORT} meta mark & ${MARK} != 0 counter
        }
        chain after {
          type filter hook postrouting priority 0
          udp dport ${TUNNEL_PORT} meta mark & ${MARK} != 0 counter
          udp dport ${TUNNEL_PORT} ct state != untracked counter
        }
        chain translating {
          type nat hook postrouting priority 90
          meta mark & ${MARK} != 0 masquerade fully-random
        }
      }`,
    );
    const packets = (chain: string) =>
      [...nft(one!, `list chain inet foreign ${chain}`).matchAll(/packets (\d+)/g)].map(([, count]) => Number(count));
    const sources = FAMILIES.map((family) => one!.namespace.run('ip', '-o', 'address', 'show', 'dev', device(family)));
    for (const family of FAMILIES) {
      const answer = await cluster.ask(pod1!, pod2!, family);
      expect(sources.join()).toContain(/saw (\S+)/.exec(answer)?.[1]);
    }
    expect(packets('before')[0]).toBeGreaterThan(2);
    expect(packets('after')).toEqual([0, 0]);
    for (const node of [one!, two!]) {
      for (const family of ['ipv4', 'ipv6']) {
        expect(node.namespace.run('conntrack', '-L', '-f', family)).not.toContain(`dport=${TUNNEL_PORT}`);
      }
    }
    nft(one!, 'delete table inet foreign');
  });

  it('what leaves the cluster carries the node’s address, also what goes to another node’s own', async () => {
    const node = FAMILIES.map((family) => one!.ip(family));
    await expect.poll(() => seen(stranger)).toEqual(node.map((ip) => `stranger saw ${ip}`));
    expect(await seen(two!)).toEqual(node.map((ip) => `node-2 saw ${ip}`));
  });

  it('what others flush is back at once', async () => {
    await answers(pod1!, pod2!).toEqual(bothFrom(pod1!, pod2!));
    const before = table();
    for (const meddle of ['flush ruleset', 'flush chain inet nodeplane-routes masquerade-ipv4']) {
      nft(one!, meddle);
      await expect.poll(() => (nft(one!, 'list tables').includes('nodeplane-routes') ? table() : '')).toBe(before);
    }
    for (const family of ['ipv4', 'ipv6']) {
      nft(one!, `flush set inet nodeplane-routes peers-${family}`);
      await expect.poll(table).toBe(before);
    }
    expect(await agent.metrics()).toMatch(/^nodeplane_routes_rule_repairs_total 2$/m);
  });

  it('a node’s last address is let in for a while', async () => {
    const set = (name: string) => nft(one!, `list set inet nodeplane-routes ${name}-ipv4`);
    cluster.tell(cluster.nodes[2], { ips: ['192.168.60.9', 'fd00:60::9'] });
    await expect.poll(() => set('peers')).toContain('192.168.60.9');
    expect(set('peers')).not.toContain(cluster.nodes[2].ip());
    expect(set('former-peers')).toContain(`${cluster.nodes[2].ip()} expires`);
    cluster.tell(cluster.nodes[2]);
    await answers(pod1!, pod3!).toEqual(bothFrom(pod1!, pod3!));
  });

  it('a restart changes nothing in the table', async () => {
    // With the kernel's number of the table: one made anew has another.
    const before = one!.namespace.run('nft', '-a', 'list', 'tables', 'inet');
    await cluster.stop();
    const [again] = await cluster.start('--routes', 'vxlan');
    await expect.poll(() => JSON.stringify(again!.logs())).toContain('Routes synced');
    await answers(pod1!, pod3!).toEqual(bothFrom(pod1!, pod3!));
    expect(one!.namespace.run('nft', '-a', 'list', 'tables', 'inet')).toBe(before);
  });

  it('an agent without --routes says what is left, and --routes-only removes it and no Services', async () => {
    await cluster.stop();
    const [plain] = await cluster.start();
    const said = () => plain!.logs().find(({ msg }) => String(msg).includes('are still here'));
    await expect.poll(said).toMatchObject({
      present: expect.stringMatching(
        /IPv4 routes \(proto 78\).* IPv6 routes .*device nodeplane-v4, device nodeplane-v6, nftables table inet nodeplane-routes/,
      ),
      remedy: 'nodeplane cleanup --routes-only',
    });
    const services = nft(one!, 'list table ip nodeplane');
    one!.namespace.run(builtProgram('nodeplane'), 'cleanup', '--routes-only');
    expect(one!.namespace.run('ip', 'route', 'show', 'proto', '78')).toBe('');
    expect(nft(one!, 'list table ip nodeplane')).toBe(services);
    expect(nft(one!, 'list tables')).not.toContain('nodeplane-routes');
  });

  it('nodeplane cleanup --routes removes the table', async () => {
    await cluster.stop();
    await cluster.start('--routes', 'vxlan');
    await cluster.stop();
    const said = () => one!.namespace.run(builtProgram('nodeplane'), 'cleanup', '--routes');
    expect(said()).toContain('nftables table inet nodeplane-routes: removed\n');
    expect(nft(one!, 'list tables')).not.toContain('nodeplane-routes');
    expect(said()).toContain('nftables table inet nodeplane-routes: clean\n');
  });
});

describe('masquerading', () => {
  afterEach(() => cluster.stop());

  it('--routes host-gw: other nodes see the pod', async () => {
    await cluster.start('--routes', 'host-gw');
    await answers(pod1!, pod2!).toEqual(bothFrom(pod1!, pod2!));
    await expect.poll(() => seen(two!)).toEqual(bothFrom(pod1!, two!));
    expect(await seen(stranger)).toEqual(FAMILIES.map((family) => `stranger saw ${one!.ip(family)}`));
    expect(table()).not.toContain('tunnel');
  });

  it('--non-masquerade-cidrs and one family alone', async () => {
    const exempt = FAMILIES.map((family) => two!.ip(family) + (family === 'IPv4' ? '/32' : '/128')).join();
    await cluster.start('--routes', 'vxlan', '--masquerade-cidrs', 'ipv4', '--non-masquerade-cidrs', exempt);
    await answers(pod1!, pod2!).toEqual(bothFrom(pod1!, pod2!));
    for (const cidr of one!.podCidrs) addRoute(stranger, cidr, one!);
    await expect
      .poll(() => seen(stranger))
      .toEqual([`stranger saw ${one!.ip('IPv4')}`, `stranger saw ${pod1!.ip('IPv6')}`]);
    expect(await seen(two!)).toEqual(bothFrom(pod1!, two!));
  });

  it('--masquerade-cidrs none: everybody sees the pod', async () => {
    await cluster.start('--routes', 'host-gw', '--masquerade-cidrs', 'none');
    await answers(pod1!, pod2!).toEqual(bothFrom(pod1!, pod2!));
    await expect.poll(() => seen(stranger)).toEqual(bothFrom(pod1!, stranger));
    expect(nft(one!, 'list tables')).not.toContain('nodeplane-routes');
  });
});

function device(family: 'IPv4' | 'IPv6'): string {
  return family === 'IPv4' ? 'nodeplane-v4' : 'nodeplane-v6';
}

/** Who sends the forged packets: no pod has these addresses. */
const FORGED = { IPv4: '10.244.77.7', IPv6: 'fd00:10:244:77::7' };

/** A VXLAN packet of network 1 (RFC 7348) with a UDP packet to port 9999 in it. */
function vxlanFrame(family: 'IPv4' | 'IPv6', mac: string, to: string): Buffer {
  const vxlan = Buffer.from('0800000000000100', 'hex');
  const ethernet = Buffer.from(`${mac.replaceAll(':', '')}02000000007a${family === 'IPv4' ? '0800' : '86dd'}`, 'hex');
  const addresses = Buffer.concat([FORGED[family], to].map((address) => Buffer.from(parseIp(address).bytes)));
  const udp = Buffer.from('270f270f00080000', 'hex');
  // The pseudo header of RFC 768 and RFC 8200: addresses, length, protocol.
  udp.writeUInt16BE(checksum(Buffer.concat([addresses, Buffer.from('00080011', 'hex'), udp])), 6);
  return Buffer.concat([vxlan, ethernet, family === 'IPv4' ? ipv4Header(addresses) : ipv6Header(addresses), udp]);
}

/** RFC 791: version, length 28, TTL 64, UDP. */
function ipv4Header(addresses: Buffer): Buffer {
  const header = Buffer.concat([Buffer.from('4500001c0001000040110000', 'hex'), addresses]);
  header.writeUInt16BE(checksum(header), 10);
  return header;
}

/** RFC 8200: version, length 8, UDP, hop limit 64. */
function ipv6Header(addresses: Buffer): Buffer {
  return Buffer.concat([Buffer.from('6000000000081140', 'hex'), addresses]);
}

/** RFC 1071. */
function checksum(bytes: Buffer): number {
  let sum = 0;
  for (let at = 0; at < bytes.length; at += 2) sum += bytes.readUInt16BE(at);
  while (sum > 0xffff) sum = (sum & 0xffff) + (sum >>> 16);
  return ~sum & 0xffff;
}
