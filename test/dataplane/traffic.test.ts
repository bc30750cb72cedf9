import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Agent, removeAll, tally } from '../lab/lab.ts';
import { type Destination, type Expected, type HostName, SCENARIOS, type Scenario } from './scenario.ts';
import { createWorld, FAMILIES, type World } from './world.ts';

/** Each way to make Services work, as flags of the agent. */
const MODES = [
  { mode: 'iptables, nft variant', flags: ['--iptables-variant', 'nft'] },
  { mode: 'iptables, legacy variant', flags: ['--iptables-variant', 'legacy'] },
];
/** So often that missing one of three endpoints by chance happens once in a hundred million runs. */
const TRIES = 48;
/** Long enough on a busy machine for an answer, short enough to wait for where none may come. */
const SILENCE_MS = 400;

afterAll(removeAll);

describe.each(MODES)('$mode', ({ flags }) => {
  let world: World;
  let agent: Agent;

  beforeAll(async () => {
    world = await createWorld(SCENARIOS);
    agent = await world.node.startAgent({ manifests: world.manifests, flags: [...world.flags, ...flags] });
  });
  afterAll(async () => {
    expect(await agent.stop()).toBe(0);
  });

  describe.each(FAMILIES)('%s', (family) => {
    const checks = SCENARIOS.flatMap((scenario) =>
      scenario.checks
        .filter((check) => (check.family ?? family) === family)
        .map((check) => ({ title: `${scenario.name}: ${check.from} to ${check.to}`, scenario, ...check })),
    );
    it.each(checks)('$title', async ({ scenario, from, to, expected }) => {
      await check({ scenario, from, to, expected });
    });

    async function check(input: { scenario: Scenario; from: HostName; to: Destination; expected: Expected }) {
      const { scenario, from, to, expected } = input;
      const target = world.target(scenario, to, family);
      const client = world.hosts[from];
      if (expected === 'timeout' || expected === 'refused') {
        const outcome = await client.connect(target, { timeoutMs: expected === 'timeout' ? SILENCE_MS : 2000 });
        expect(outcome).toMatchObject({ kind: expected });
        return;
      }
      // With affinity the first connection decides; two at the same instant could each decide for themselves.
      if ('byOneOf' in expected) await client.connect(target);
      const { answers, failures, sources } = tally(await client.connectMany(target, TRIES));
      expect(failures).toEqual({});
      if ('byOneOf' in expected) {
        expect(Object.keys(answers)).toHaveLength(1);
        expect(expected.byOneOf).toContain(Object.keys(answers)[0]);
        return;
      }
      expect(Object.keys(answers).sort()).toEqual([...expected.by].sort());
      if (expected.source === 'own') expect([...sources]).toEqual([client.ip(family)]);
      else for (const source of sources) expect(nodeAddresses()).toContain(source);
    }

    /** The addresses masquerading may choose: the node's own, and its end of the pod network. */
    function nodeAddresses(): string[] {
      const flag = family === 'IPv4' ? '-4' : '-6';
      const links: { addr_info: { local: string }[] }[] = JSON.parse(
        world.node.namespace.run('ip', '-j', flag, 'address'),
      );
      return links.flatMap((link) => link.addr_info.map((address) => address.local));
    }
  });
});
