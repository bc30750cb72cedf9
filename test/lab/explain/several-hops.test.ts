import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { removeAll } from '../lab.ts';
import { patient } from '../patience.ts';
import { ExplainWorld, on, served } from './explain-world.ts';
import { answers, Faults } from './faults.ts';

// Routes to pods of another node with two next hops, one of which is nobody: each connection gets one of them, by what
// fib_multipath_hash_policy says.

const [VIP, VIP6] = ['10.96.0.10', 'fd00:96::10'];
const [NOBODY, NOBODY6] = ['192.168.50.77', 'fd00:50::77'];
const TRIES = 24;
const world = new ExplainWorld();
const faults = new Faults(world);
const { node, other, far, client } = world;

beforeAll(
  () =>
    world.begin([
      ...served('shop/far', VIP, [on(other, far.ip())]),
      ...served('shop/far6', VIP6, [on(other, far.ip('IPv6'))]),
    ]),
  300_000,
);
afterAll(async () => {
  await world.end();
  removeAll();
});

/** Gives the route of the other node's pods these next hops. */
function leadBy(...hops: string[]): void {
  const range = other.podCidrs[hops[0]!.includes(':') ? 1 : 0]!;
  const family = range.includes(':') ? '-6' : '-4';
  const before = world.run('ip', family, 'route', 'show', range).trim().split(' ').filter(Boolean);
  faults.undo(() => {
    world.run('ip', family, 'route', 'del', range);
    world.run('ip', family, 'route', 'add', ...before);
  });
  world.run('ip', family, 'route', 'del', range);
  world.run('ip', family, 'route', 'add', range, ...hops.flatMap((hop) => ['nexthop', 'via', hop, 'dev', 'eth0']));
}

/** The kernel gives up on them; it forgets that soon, where many namespaces have 128 entries together. */
async function giveUpOn(...all: readonly string[]): Promise<void> {
  const stateOf = (ip: string) => world.run('ip', 'neigh', 'show', ip);
  const look = async () => {
    const unknown = all.filter((ip) => !/FAILED|INCOMPLETE/.test(stateOf(ip)));
    await Promise.all(unknown.map((ip) => answers(node, ip, 9)));
    for (const ip of all) expect(stateOf(ip)).toContain('FAILED');
  };
  await vi.waitFor(look, { timeout: patient(30_000), interval: 100 });
}

async function answered(ip: string): Promise<number> {
  const outcomes = await client.connectMany({ ip, port: 80, protocol: 'TCP' }, TRIES, { timeoutMs: 2000 });
  return outcomes.filter(({ kind }) => kind === 'answered').length;
}

describe.each([
  ['IPv4', VIP, other.ip(), NOBODY],
  ['IPv6', VIP6, other.ip('IPv6'), NOBODY6],
] as const)('%s', (family, vip, somebody, nobody) => {
  const destination = family === 'IPv6' ? `[${vip}]:80` : `${vip}:80`;

  it.each(['0', '1', '2', '3'])('fib_multipath_hash_policy %s', async (policy) => {
    faults.sysctl(`net.${family.toLowerCase()}.fib_multipath_hash_policy`, policy);
    for (const hops of [
      [somebody, nobody],
      [nobody, somebody],
    ]) {
      leadBy(...hops);
      await giveUpOn(nobody);
      const answer = await world.ask(destination, client.ip(family));
      expect(answer, answer.cause).toMatchObject({ verdict: 'unknown', code: 'cannot-tell' });
      expect(answer.cause).toContain('by another of 2 next hops, of which one is lost (nobody answers for');
      const tried = await world.ask(destination, client.ip(family), '--probe');
      const good = await answered(vip);
      const verdict = good === TRIES ? 'works' : good === 0 ? 'fails' : 'partly';
      // Of IPv6 the kernel avoids a next hop for some time that did not answer.
      expect([verdict, ...(family === 'IPv6' ? ['unknown'] : [])], tried.cause).toContain(tried.verdict);
      faults.mend();
      faults.sysctl(`net.${family.toLowerCase()}.fib_multipath_hash_policy`, policy);
    }
  });

  it('nobody is at any of them', async () => {
    const both = [nobody, nobody.replace('77', '78')];
    leadBy(...both);
    await giveUpOn(...both);
    await faults.expectCode(destination, client.ip(family), 'neighbour');
    expect(await answered(vip)).toBe(0);
  });
});
