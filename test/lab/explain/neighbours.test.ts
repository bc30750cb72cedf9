import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { withPort } from '../../../src/core/index.ts';
import { diffHere } from '../diff-here.ts';
import { useOwnLockFile } from '../iptables/fixtures.ts';
import { type Host, removeAll } from '../lab.ts';
import { ExplainWorld, on, served, TARGET } from './explain-world.ts';
import { answers, Faults } from './faults.ts';
import { loadNeighbour, NEIGHBOURS, type NeighbourName, type Place } from './neighbours.ts';

// Beside what clusters run on their nodes every verdict is known, and is what a real connection says; nobody changes what is the other's.

useOwnLockFile();
const [VIP, OTHER, DNS, VIP6] = ['10.96.0.10', '10.96.0.11', '10.96.0.53', 'fd00:96::10'];
const [NODE_PORT, OTHER_PORT] = [30_080, 30_081];
const TRIES = 3;
/** What docs/neighbours.md says of a cache that is to be gone for good. */
const REMOVAL = /```text\n([^`]*)```/.exec(
  readFileSync(new URL('../../../docs/neighbours.md', import.meta.url), 'utf8'),
)![1]!;
const world = new ExplainWorld();
const faults = new Faults(world);
const { node, web, web2, client, outside } = world;

beforeAll(async () => {
  const port = (nodePort: number) => ({ type: 'NodePort', ports: [{ port: 80, nodePort }] }) as const;
  await world.prepare([
    ...served('shop/web', VIP, [on(node, web.ip())], port(NODE_PORT)),
    ...served('shop/other', OTHER, [on(node, web2.ip())], port(OTHER_PORT)),
    ...served('shop/web6', VIP6, [on(node, web.ip('IPv6'))]),
    ...served('kube-system/kube-dns', DNS, [on(node, web.ip())], { ports: [{ port: 53, protocol: 'UDP' }] }),
  ]);
}, 300_000);
afterAll(async () => {
  await world.end();
  removeAll();
});

interface Tried {
  readonly from: Host;
  readonly ip: string;
  readonly port: number;
  readonly protocol?: 'TCP' | 'UDP';
}

const TRIED: readonly Tried[] = [
  { from: client, ip: VIP, port: 80 },
  { from: client, ip: web.ip(), port: TARGET },
  { from: web, ip: VIP, port: 80 },
  { from: web2, ip: VIP, port: 80 },
  { from: web, ip: OTHER, port: 80 },
  { from: node, ip: VIP, port: 80 },
  { from: node, ip: web.ip(), port: TARGET },
  { from: outside, ip: node.ip(), port: NODE_PORT },
  { from: outside, ip: node.ip(), port: OTHER_PORT },
  { from: client, ip: node.ip(), port: NODE_PORT },
  { from: client, ip: DNS, port: 53, protocol: 'UDP' },
];
const TRIED6: readonly Tried[] = [client, web2, web, node].map((from) => ({ from, ip: VIP6, port: 80 }));

/** What is said, and what is so, of each of them. */
async function compare(tried: readonly Tried[]): Promise<void> {
  const questions = tried.map(({ from, ip, port, protocol = 'TCP' }) => ({
    destination: withPort(ip, port),
    source: from === node ? 'node' : from.ip(ip.includes(':') ? 'IPv6' : 'IPv4'),
    protocol: protocol.toLowerCase(),
  }));
  const said = await world.askHere(questions);
  for (const [index, { from, ip, port, protocol = 'TCP' }] of tried.entries()) {
    const outcomes = await from.connectMany({ ip, port, protocol }, TRIES, { timeoutMs: 1000 });
    const good = outcomes.filter(({ kind }) => kind === 'answered').length;
    const really = good === TRIES ? 'works' : good === 0 ? 'fails' : 'partly';
    const { verdict, code, cause } = said[index]!;
    expect(verdict, `${from.name} to ${ip}:${port}: ${cause}`).toBe(really);
    expect(code, cause).toBe(really === 'works' ? null : 'foreign-drop');
  }
}

/** All rules there are, counters aside. */
function rulesOf({ program }: Pick<Place, 'program'>): string {
  const saved = ['raw', 'mangle', 'nat', 'filter'].map((table) => world.run(`${program}-save`, '-t', table)).join('');
  return saved.replace(/^#.*\n/gm, '').replace(/\[\d+:\d+\]/g, '');
}

const MODES = [
  ['nftables', ['--proxy-mode', 'nftables'], 'iptables-nft'],
  ['nftables', ['--proxy-mode', 'nftables'], 'iptables-legacy'],
  ['iptables', ['--proxy-mode', 'iptables', '--iptables-variant', 'nft'], 'iptables-nft'],
  ['iptables', ['--proxy-mode', 'iptables', '--iptables-variant', 'legacy'], 'iptables-legacy'],
] as const;

describe.each(MODES)('mode %s %j beside %s', (mode, flags, program) => {
  beforeAll(async () => {
    await world.startAgent(...flags);
  }, 300_000);
  afterAll(async () => {
    await world.end();
    await world.command('cleanup');
  });

  function begin(name: NeighbourName, more: Partial<Place> = {}): void {
    const place = { world, program, dns: DNS, ...more };
    const remove = loadNeighbour(name, place);
    faults.undo(remove);
  }
  /** Rules of ours that went with theirs are back. */
  async function end(): Promise<void> {
    faults.mend();
    expect(await diffHere(node.namespace, { repair: true })).toMatchObject({ exitCode: 0 });
  }

  const all = program === 'iptables-legacy' ? NEIGHBOURS.iptables : [...NEIGHBOURS.iptables, ...NEIGHBOURS.nftables];
  it.each(all)('%s', async (name) => {
    begin(name);
    if (name === 'nodelocaldns') await compare(TRIED.slice(0, -1));
    else await compare(TRIED);
    expect(await diffHere(node.namespace)).toMatchObject({ exitCode: 0 });
    const before = rulesOf({ program });
    expect(await diffHere(node.namespace, { repair: true })).toMatchObject({ exitCode: 0 });
    expect(rulesOf({ program })).toBe(before);
    await end();
  });

  it.each(['kube-router', 'calico'] as const)('%s, IPv6', async (name) => {
    begin(name, { family: 'IPv6' });
    await compare(TRIED6);
    await end();
  });

  it('NodeLocal DNSCache has ended, and its rules are left: they are named', async () => {
    begin('nodelocaldns');
    for (const from of [client, node]) {
      const [answer] = await world.askHere([
        { destination: `${DNS}:53`, source: from === node ? 'node' : from.ip(), protocol: 'udp' },
      ]);
      expect(answer, answer!.cause).toMatchObject({ verdict: 'fails', code: 'foreign-drop' });
      expect(answer!.cause).toContain('no process listens there');
      expect(await answers(from, DNS, 53, 'UDP')).toBe(false);
    }
    // As docs/neighbours.md says.
    world.run('sh', '-c', REMOVAL.replaceAll('iptables', program));
    expect(await answers(client, DNS, 53, 'UDP')).toBe(true);
    await end();
  });

  it(`what was there before the agent stays as it is, when it starts and when mode ${mode} is cleaned up`, async () => {
    await world.end();
    await world.command('cleanup');
    begin('kube-router');
    const before = rulesOf({ program });
    await world.startAgent(...flags);
    await compare(TRIED);
    await world.end();
    expect(await world.command('cleanup')).toMatchObject({ exitCode: 0 });
    expect(rulesOf({ program })).toBe(before);
    faults.mend();
    await world.startAgent(...flags);
  });
});
