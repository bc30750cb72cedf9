import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { withPort } from '../../../src/core/index.ts';
import { type Host, removeAll } from '../lab.ts';
import { ExplainWorld } from './explain-world.ts';
import { answers, Faults } from './faults.ts';
import { healthyCases, healthyObjects, placeOf } from './healthy.ts';

// Firewalls that hosts have, with the rules that they really write (test/samples/firewalls): what is said of
// connections of all kinds is what becomes of them, and is never that it cannot be told.

const SAMPLES = fileURLToPath(new URL('../../samples/firewalls', import.meta.url));
const MODES = {
  nftables: ['--proxy-mode', 'nftables'],
  'iptables, variant nft': ['--proxy-mode', 'iptables', '--iptables-variant', 'nft'],
  'iptables, variant legacy': ['--proxy-mode', 'iptables', '--iptables-variant', 'legacy'],
} as const;
/** Open on the node, but in no firewall. */
const PROCESS = 9000;
/** Whom session affinity holds in mode iptables depends on times that the kernel does not tell. */
const cases = healthyCases(40).filter(({ affinity }) => !affinity);

afterAll(removeAll);

describe.each(Object.entries(MODES))('mode %s', (mode, flags) => {
  const world = new ExplainWorld();
  const faults = new Faults(world);
  const { node, client, outside } = world;
  const variant = mode.endsWith('legacy') ? 'legacy' : 'nft';

  beforeAll(async () => {
    await node.serve({ port: PROCESS });
    await world.begin(healthyObjects(world), ...flags);
  }, 300_000);
  afterAll(() => world.end());

  const FIREWALLS: Readonly<Record<string, () => void>> = {
    'firewalld, the pods trusted': () => {
      world.run('nft', '-f', join(SAMPLES, 'firewalld.nft'));
      faults.undo(() => world.run('nft', 'delete table inet firewalld'));
    },
    'firewalld, the pods in no zone': () => {
      world.run('nft', '-f', join(SAMPLES, 'firewalld.nft'));
      faults.undo(() => world.run('nft', 'delete table inet firewalld'));
      for (const hook of ['mangle_PREROUTING', 'nat_PREROUTING', 'nat_POSTROUTING', 'filter_INPUT', 'filter_FORWARD']) {
        const chain = `inet firewalld ${hook}_ZONES`;
        world.run('nft', `flush chain ${chain}; add rule ${chain} goto ${goal(hook)}_public`);
      }
    },
    'ufw, which lets routed packets pass': () => loadUfw('ACCEPT'),
    'ufw as it is installed': () => loadUfw('DROP'),
  };
  /** Behind what is there: the agent's jumps stay. */
  function loadUfw(policy: 'ACCEPT' | 'DROP'): void {
    for (const [program, family] of [
      ['iptables', 'ipv4'],
      ['ip6tables', 'ipv6'],
    ] as const) {
      const restore = `${program}-${variant}-restore --noflush`;
      world.run(
        'sh',
        '-ec',
        `sed 's/^:FORWARD .*/:FORWARD ${policy} [0:0]/' ${join(SAMPLES, `ufw.${family}.rules`)} | ${restore}`,
      );
      faults.undo(() => {
        const tool = `${program}-${variant}`;
        const chains = `$(${tool} -S | sed -n 's/^-N \\(ufw.*\\)/\\1/p')`;
        const jumps = `${tool}-save -t filter | sed -n 's/^-A \\(INPUT\\|FORWARD\\|OUTPUT\\) -j ufw/-D \\1 -j ufw/p'`;
        world.run(
          'sh',
          '-ec',
          `${jumps} | while read rule; do ${tool} $rule; done; for c in ${chains}; do ${tool} -F $c; done; for c in ${chains}; do ${tool} -X $c; done`,
        );
        for (const chain of ['INPUT', 'FORWARD']) world.run(tool, '-P', chain, 'ACCEPT');
      });
    }
  }

  it.each(Object.entries(FIREWALLS))('%s', async (_, load) => {
    load();
    world.run('conntrack', '-F');
    const places = cases.map((one) => ({
      ...placeOf(one, world),
      host: world[one.from] as Host,
      protocol: one.protocol,
    }));
    for (const host of [client, outside])
      places.push({ source: host.ip(), host, ip: node.ip(), port: PROCESS, protocol: 'TCP' });
    const told = await world.askHere(
      places.map(({ host, source, ip, port, protocol }) => ({
        destination: withPort(ip, port),
        source: host === node ? 'node' : source,
        protocol,
      })),
    );
    const reached = await Promise.all(places.map(({ host, ip, port, protocol }) => answers(host, ip, port, protocol)));
    const verdicts = told.map(({ question: { from, to }, verdict, cause }) => `${from} -> ${to}: ${verdict}, ${cause}`);
    // Of what works partly one connection shows nothing.
    const truth = told.map(({ verdict }, at) => (verdict === 'partly' ? 'partly' : reached[at] ? 'works' : 'fails'));
    expect(verdicts.filter((_, at) => told[at]!.verdict !== truth[at])).toEqual([]);
    // Of each kind there is one, or nothing would be shown.
    expect(new Set(truth)).toContain('works');
    expect(new Set(truth)).toContain('fails');
  });
});

function goal(hook: string): string {
  return {
    mangle_PREROUTING: 'mangle_PRE',
    nat_PREROUTING: 'nat_PRE',
    nat_POSTROUTING: 'nat_POST',
    filter_INPUT: 'filter_IN',
    filter_FORWARD: 'filter_FWD',
  }[hook]!;
}
