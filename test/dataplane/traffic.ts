import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { IpFamily } from '../../src/core/index.ts';
import { type Agent, type Host, type Outcome, removeAll, type Target, tally } from '../lab/lab.ts';
import { describeMode, type ModeName, servesLoopback } from './modes.ts';
import { type Destination, type Expected, type HostName, SCENARIOS, type Scenario } from './scenario.ts';
import { createWorld, FAMILIES, type World } from './world.ts';

/** Connections made at once. */
const ROUND = 16;
/** In so many rounds, missing one of three endpoints by chance happens once in a hundred million runs. */
const MAX_ROUNDS = 3;
/** Long enough on a busy machine for an answer, short enough to wait for where none may come. */
const SILENCE_MS = 400;

const REFUSED = 'refused' as const;

/** Checks all scenarios in one mode and both families. A mode has a test file of its own, so that modes run side by side. */
export function testTraffic(mode: ModeName): void {
  afterAll(removeAll);

  describeMode(mode, (flags) => {
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
          .map((check) => ({ title: `${scenario.name}: ${check.from} to ${check.to}`, scenario, ...check }))
          .map((check) =>
            check.to === 'nodePortOfLoopback' && !servesLoopback(mode) ? { ...check, expected: REFUSED } : check,
          ),
      );
      it.each(checks.filter(({ expected }) => expected !== 'timeout'))('$title', (input) =>
        check(world, { ...input, family }),
      );
      // They wait for nothing to happen, and can do so together.
      it.concurrent.each(checks.filter(({ expected }) => expected === 'timeout'))('$title', (input) =>
        check(world, { ...input, family }),
      );
    });
  });
}

interface CheckInput {
  readonly scenario: Scenario;
  readonly from: HostName;
  readonly to: Destination;
  readonly expected: Expected;
  readonly family: IpFamily;
}

async function check(world: World, { scenario, from, to, expected, family }: CheckInput): Promise<void> {
  const target = world.target(scenario, to, family);
  const client = world.hosts[from];
  if (expected === 'timeout' || expected === 'refused') {
    const outcome = await client.connect(target, { timeoutMs: expected === 'timeout' ? SILENCE_MS : 2000 });
    expect(outcome).toMatchObject({ kind: expected });
    return;
  }
  // With affinity the first connection decides; two at the same instant could each decide for themselves.
  if ('byOneOf' in expected) await client.connect(target);
  const { answers, failures, sources } = tally(
    await connectUntilAll(client, target, 'by' in expected ? expected.by : []),
  );
  expect(failures).toEqual({});
  if ('byOneOf' in expected) {
    expect(Object.keys(answers)).toHaveLength(1);
    expect(expected.byOneOf).toContain(Object.keys(answers)[0]);
    return;
  }
  expect(Object.keys(answers).sort()).toEqual([...expected.by].sort());
  if (expected.source === 'own') expect([...sources]).toEqual([client.ip(family)]);
  else for (const source of sources) expect(nodeAddresses(world, family)).toContain(source);
}

/** Connects in rounds until each of `names` has answered, or the rounds are over. */
async function connectUntilAll(client: Host, target: Target, names: readonly HostName[]): Promise<Outcome[]> {
  const outcomes: Outcome[] = [];
  for (let round = 0; round < MAX_ROUNDS; round++) {
    outcomes.push(...(await client.connectMany(target, ROUND)));
    const { answers } = tally(outcomes);
    if (names.every((name) => name in answers)) break;
  }
  return outcomes;
}

/** The addresses masquerading may choose: the node's own, and its end of the pod network. */
function nodeAddresses(world: World, family: IpFamily): string[] {
  const flag = family === 'IPv4' ? '-4' : '-6';
  const links: { addr_info: { local: string }[] }[] = JSON.parse(world.node.namespace.run('ip', '-j', flag, 'address'));
  return links.flatMap((link) => link.addr_info.map((address) => address.local));
}
