import { afterAll, afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createNamespace, removeAll } from '../namespace.ts';
import { createFeatureWorld, type FeaturePod, type FeatureWorld, mapping } from './feature-world.ts';

const NET = { firewall: true, ipMasq: true };

let world: FeatureWorld;

beforeEach(async () => {
  world = createFeatureWorld();
  await world.outside.serve({ port: 80 });
});

afterEach(removeAll);
afterAll(removeAll);

function iptables(...args: string[]): string {
  return world.node.namespace.run('iptables-nft', ...args);
}

async function reachesOutside(pod: FeaturePod): Promise<string> {
  return (await pod.connect({ ip: world.outside.ip(), port: 80 })).kind;
}

describe('a FORWARD chain of iptables-nft that drops', () => {
  it('lets pods through, both ways, and iptables shows the rules', async () => {
    iptables('-P', 'FORWARD', 'DROP');
    world.node.namespace.run('ip6tables-nft', '-P', 'FORWARD', 'DROP');
    const before = iptables('-S');
    const blocked = await world.addPod('blocked', { ipMasq: true });
    expect(await reachesOutside(blocked)).toBe('timeout');

    const pod = await world.addPod('pod', { ...NET, ...mapping({ hostPort: 8080, containerPort: 80 }) });
    expect(await reachesOutside(pod)).toBe('answered');
    await pod.serve({ port: 80 });
    for (const ip of world.nodeHost.ips) {
      expect(await world.outside.connect({ ip, port: 8080 })).toMatchObject({ kind: 'answered', by: 'pod' });
    }
    expect(iptables('-S').split('\n')).toEqual(
      expect.arrayContaining([
        '-A FORWARD -m comment --comment "pods of nodeplane-cni" -j NODEPLANE-FORWARD',
        '-A NODEPLANE-FORWARD -s 10.244.1.0/24 -m comment --comment "nodeplane-cni net" -j ACCEPT',
        '-A NODEPLANE-FORWARD -d 10.244.1.0/24 -m comment --comment "nodeplane-cni net" -j ACCEPT',
      ]),
    );
    const written = iptables('-S');
    const second = await world.addPod('second', NET);
    expect(iptables('-S')).toBe(written);

    await world.del(second, NET);
    await world.del(blocked, NET);
    expect(iptables('-S')).toBe(written);
    await world.del(pod, NET);
    expect(iptables('-S')).toBe(before);
  });

  it('keeps what refuses for a reason before ours, and ours before a refusal of everything', async () => {
    iptables('-A', 'FORWARD', '-d', '192.0.2.2', '-p', 'tcp', '--dport', '80', '-j', 'DROP');
    iptables('-A', 'FORWARD', '-j', 'REJECT');
    const pod = await world.addPod('pod', NET);
    expect(iptables('-S', 'FORWARD').trim().split('\n').slice(1)).toEqual([
      expect.stringContaining('-p tcp -m tcp --dport 80 -j DROP'),
      expect.stringContaining('-j NODEPLANE-FORWARD'),
      expect.stringContaining('-j REJECT'),
    ]);
    expect(await reachesOutside(pod)).toBe('timeout');
    iptables('-D', 'FORWARD', '1');
    expect(await reachesOutside(pod)).toBe('answered');
  });

  it('is before a refusal of everything, too, that others have put something behind', async () => {
    for (const target of ['REJECT', 'LOG']) iptables('-A', 'FORWARD', '-j', target);
    const pod = await world.addPod('pod', NET);
    expect(iptables('-S', 'FORWARD').trim().split('\n').slice(1)).toEqual([
      expect.stringContaining('-j NODEPLANE-FORWARD'),
      expect.stringContaining('-j REJECT'),
      '-A FORWARD -j LOG',
    ]);
    expect(await reachesOutside(pod)).toBe('answered');
  });

  it('is checked, and admits pods again with the next ADD after a flush', async () => {
    iptables('-P', 'FORWARD', 'DROP');
    const pod = await world.addPod('pod', NET);
    const check = () => world.call('CHECK', pod.namespace, { ...NET, prevResult: pod.result });
    expect(await check()).toMatchObject({ status: 0 });
    iptables('-F', 'FORWARD');
    expect((await check()).json?.msg).toContain('Chain FORWARD of the IPv4 filter table does not admit the pod');
    expect(await reachesOutside(pod)).toBe('timeout');
    await world.addPod('second', NET);
    expect(await reachesOutside(pod)).toBe('answered');
  });
});

describe('what drops and cannot be changed', () => {
  it('is not looked for in chains that take long to read, of which each ADD would wait for all others', async () => {
    const banned = Array.from({ length: 501 }, (_, at) => `-A BANNED -s 198.51.${at >> 8}.${at & 255} -j DROP`);
    const rules = ['*filter', ':BANNED -', '-A FORWARD -j BANNED', ...banned, '-A BANNED -j REJECT', 'COMMIT'];
    const chains = Array.from({ length: 1001 }, (_, at) => `add chain ip nat KUBE-SVC-${at}`);
    const site = 'add table ip site; add chain ip site passing { type filter hook forward priority 0; policy drop; }';
    const { run } = world.node.namespace;
    run('sh', '-ec', `iptables-nft-restore <<'END'\n${rules.join('\n')}\nEND`);
    run('sh', '-ec', `nft -f - <<'END'\nadd table ip nat\n${chains.join('\n')}\n${site}\nEND`);
    const outcome = await world.call('ADD', createNamespace('pod'), NET);
    expect(outcome).toMatchObject({ status: 0, stderr: '' });
  });

  it.each([
    [
      'shorewall',
      '-N reject; IPT -A reject -p tcp -j REJECT; IPT -A reject -j DROP; IPT -A FORWARD -g reject',
      'reject',
    ],
    [
      'ufw with "default reject routed"',
      '-N ufw-reject-forward; IPT -A ufw-reject-forward -j REJECT; IPT -A FORWARD -j ufw-reject-forward; IPT -A FORWARD -j LOG',
      'ufw-reject-forward',
    ],
  ])('is left in force and reported where a firewall refuses the rest, as %s', async (_, rules, chain) => {
    world.node.namespace.run('sh', '-ec', `IPT ${rules}`.replaceAll('IPT', 'iptables-nft'));
    const pod = await world.addPod('probe');
    await world.del(pod);
    const outcome = await world.call('ADD', pod.namespace, NET);
    expect(outcome).toMatchObject({ status: 0 });
    expect(outcome.stderr.trim()).toBe(
      `nodeplane-cni: Chain FORWARD of iptables-nft (IPv4) leads what it does not accept before to chain "${chain}", which refuses it; have the firewall that made it accept the pods' addresses`,
    );
    expect(iptables('-S', 'FORWARD').trim().split('\n').at(-1)).toContain('-j NODEPLANE-FORWARD');
    expect(await reachesOutside(pod)).not.toBe('answered');
  });

  it.each([
    ['a table of one family', 'ip fw', 'passing'],
    ['a table of the other family', 'ip6 fw', 'passing'],
    ['a table named as that of iptables', 'ip filter', 'forward'],
  ])('is reported of %s', async (_, table, chain) => {
    world.node.namespace.run(
      'nft',
      `add table ${table}; add chain ${table} ${chain} { type filter hook forward priority 0; policy drop; }`,
    );
    const pod = await world.addPod('probe');
    await world.del(pod);
    expect((await world.call('ADD', pod.namespace, NET)).stderr).toContain(
      `Chain "${chain}" of the nftables table "${table}" drops what it does not accept itself`,
    );
  });

  it('is reported', async () => {
    const { namespace } = world.node;
    namespace.run('iptables-legacy', '-P', 'FORWARD', 'DROP');
    namespace.run(
      'nft',
      'add table inet site; add chain inet site passing { type filter hook forward priority 0; policy drop; }',
    );
    const pod = await world.addPod('probe');
    await world.del(pod);
    const outcome = await world.call('ADD', pod.namespace, NET);
    expect(outcome).toMatchObject({ status: 0 });
    expect(outcome.stderr).toContain(
      'Chain "passing" of the nftables table "inet site" drops what it does not accept itself',
    );
    expect(outcome.stderr).toContain('Chain FORWARD of legacy iptables (IPv4) drops what it does not accept itself');
    expect(outcome.stderr).not.toContain('(IPv6)');
  });

  it.each([
    [
      'ufw, legacy',
      'IPT -P FORWARD DROP; IPT -N ufw-user-forward; IPT -A FORWARD -j ufw-user-forward; IPT -A ufw-user-forward -i cni0 -j ACCEPT; IPT -A ufw-user-forward -o cni0 -j ACCEPT'.replaceAll(
        'IPT',
        'iptables-legacy',
      ),
    ],
    [
      'Docker, legacy',
      'iptables-legacy -P FORWARD DROP; for way in s d; do iptables-legacy -I FORWARD -$way 10.244.0.0/16 -j ACCEPT; done',
    ],
    [
      'a table by hand',
      'nft "table inet site { chain passing { type filter hook forward priority 0; policy drop; ct state vmap { established : accept, related : accept }; iifname { cni0, lo } accept; ip daddr { 10.244.0.0/16, 10.96.0.0/12 } accept; ip6 daddr fd00:10:244::/48 accept; }; }"',
    ],
    [
      'firewalld with trusted pods',
      'nft "table inet firewalld { chain pods { accept; }; chain zones { ip saddr 10.244.1.0/24 goto pods; ip6 saddr fd00:10:244:1::/64 goto pods; }; chain passing { type filter hook forward priority 0; ct state { established, related } accept; ct status dnat accept; jump zones; reject; }; }"',
    ],
  ])('is not reported where its rules let the pods through: %s', async (_, rules) => {
    world.node.namespace.run('sh', '-ec', rules);
    const outcome = await world.call('ADD', createNamespace('pod'), NET);
    expect(outcome).toMatchObject({ status: 0, stderr: '' });
  });

  it.each(['bridge', 'routed'])('is not reported of a network policy for a single pod, mode %s', async (mode) => {
    const probe = await world.addPod('probe', { mode });
    await world.del(probe, { mode });
    const link = probe.result.interfaces!.find(({ name }) => name.startsWith('veth'))!.name;
    const rules = `IPT -N POLICY; IPT -A POLICY -m mark --mark 1 -j RETURN; IPT -A POLICY -j DROP;
      IPT -A FORWARD -d ${probe.ip()} -j POLICY; IPT -A FORWARD -i ${link} -j POLICY;
      IPT -A FORWARD -i veth+ -j POLICY; IPT -A FORWARD -o veth+ -j POLICY`;
    world.node.namespace.run('sh', '-ec', rules.replaceAll('IPT', 'iptables-nft'));
    const outcome = await world.call('ADD', probe.namespace, { ...NET, mode });
    expect(outcome).toMatchObject({ status: 0, stderr: '' });
  });

  it('is reported of a table whose rules refuse what nobody trusts, as those of firewalld', async () => {
    const rules =
      'table inet firewalld { chain zones { iifname eth0 accept; reject; }; chain passing { type filter hook forward priority 0; ct status dnat accept; jump zones; }; }';
    world.node.namespace.run('nft', rules);
    const outcome = await world.call('ADD', createNamespace('pod'), NET);
    expect(outcome.stderr.trim()).toBe(
      `nodeplane-cni: Chain "zones" of the nftables table "inet firewalld" refuses packets of pods; have the firewall that made it accept the pods' addresses (nodeplane preflight names its commands)`,
    );
  });

  it('is nothing on a node without firewall, where no rule is made', async () => {
    const pod = await world.addPod('probe');
    await world.del(pod);
    const outcome = await world.call('ADD', pod.namespace, { firewall: true });
    expect(outcome).toMatchObject({ status: 0, stderr: '' });
    expect(world.node.namespace.run('nft', 'list', 'ruleset')).toBe('');
  });
});
