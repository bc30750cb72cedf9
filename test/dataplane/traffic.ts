import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { IpFamily } from '../../src/core/index.ts';
import type { Protocol } from '../../src/kube/index.ts';
import { type Agent, type ConnectOptions, type Host, type Outcome, removeAll, type Target, tally } from '../lab/lab.ts';
import { PATIENCE, patient } from '../lab/patience.ts';
import { describeMode, localhostProtocols, type ModeName, testedProtocols } from './modes.ts';
import type { Check, HostName, Scenario } from './scenario.ts';
import { SCENARIOS } from './scenarios.ts';
import { createWorld, FAMILIES, limitIcmpErrors, type World } from './world.ts';

/** Connections made at once. */
const ROUND = 16;
/** In so many rounds, missing one of three endpoints by chance happens once in a hundred million runs. */
const MAX_ROUNDS = 3;
/** Long enough on a busy machine for an answer, short enough to wait for where none may come. */
const SILENCE_MS = 400;
/**
 * Nine of ten refusals come sooner. Emulated processors are slow by a factor that is not known, but a SYN without an answer is
 * sent again after a second on any machine.
 */
const REFUSED_MS = PATIENCE === 1 ? 20 : 700;

/** Checks all scenarios in one mode and both families. A mode has a test file of its own, so that modes run side by side. */
export function testTraffic(mode: ModeName): void {
  afterAll(removeAll);

  describeMode(mode, (flags) => {
    const protocols = testedProtocols();
    let world: World;
    let agent: Agent;

    beforeAll(async () => {
      world = await createWorld(SCENARIOS, protocols);
      agent = await world.node.startAgent({ manifests: world.manifests, flags: [...world.flags, ...flags] });
    });
    afterAll(async () => {
      expect(await agent.stop()).toBe(0);
    });

    describe.each(FAMILIES)('%s', (family) => {
      const checks = SCENARIOS.flatMap((scenario) =>
        scenario.checks
          .flatMap((check) => (scenario.protocols ?? ['TCP']).map((protocol) => ({ scenario, protocol, ...check })))
          .filter(({ protocol }) => protocols.includes(protocol) && !isLeftToLab(mode, protocol))
          .filter(
            ({ to, protocol }) => to !== 'nodePortOfLoopback' || localhostProtocols(mode, family).includes(protocol),
          ),
      );
      it.each(titled(checks.filter(({ expected }) => expected !== 'timeout')))('%s', (_, input) =>
        check(world, { ...input, family }),
      );
      // They wait for nothing to happen, and can do so together.
      it.concurrent.each(titled(checks.filter(({ expected }) => expected === 'timeout')))('%s', (_, input) =>
        check(world, { ...input, family }),
      );
    });
  });
}

/** The rules of iptables are the same on the VM's kernel; emulated, each check takes seconds. SCTP is the VM's alone. */
function isLeftToLab(mode: ModeName, protocol: Protocol): boolean {
  return process.env.NODEPLANE_VM !== undefined && mode.startsWith('iptables') && protocol !== 'SCTP';
}

interface CheckInput extends Check {
  readonly scenario: Scenario;
  readonly protocol: Protocol;
  readonly family: IpFamily;
}

/** Each with its title, for `%s`, which does not shorten it as `$title` would. */
function titled<C extends Omit<CheckInput, 'family'>>(checks: readonly C[]): [string, C][] {
  return checks.map((check) => {
    const { scenario, protocol, from, to } = check;
    const { name, protocols = [] } = scenario;
    return [`${name}: ${protocols.length > 1 ? `${protocol} ` : ''}${from} to ${to}`, check];
  });
}

async function check(world: World, input: CheckInput): Promise<void> {
  const { scenario, protocol, from, to, expected, inARow = 1, family } = input;
  const target = world.target(scenario, to, family, protocol);
  const client = world.hosts[from];
  // An SCTP client has to be bound to one of its addresses (traffic/sctp-socket.ts).
  const options = protocol === 'SCTP' ? { sourceIp: client.ip(family) } : {};
  if (expected === 'not permitted') {
    const outcome = await client.connect(target, { ...options, timeoutMs: 2000 });
    expect(outcome).toMatchObject({ kind: 'timeout', errno: 'EPERM' });
    return;
  }
  if (inARow > 1) {
    limitIcmpErrors(world.node, true);
    try {
      await expectRefusals(client, target, inARow, options);
    } finally {
      limitIcmpErrors(world.node, false);
    }
    return;
  }
  if (expected === 'timeout' || expected === 'refused') {
    const timeoutMs = expected === 'timeout' ? SILENCE_MS : 2000;
    const outcome = await client.connect(target, { ...options, timeoutMs });
    expect(outcome).toMatchObject({ kind: expected });
    return;
  }
  // With affinity the first connection decides; two at the same instant could each decide for themselves.
  if ('byOneOf' in expected) await client.connect(target, options);
  const { answers, failures, sources } = tally(
    await connectUntilAll(client, target, options, 'by' in expected ? expected.by : []),
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

/**
 * A refusal that is lost costs a second, until the SYN is sent again; one that comes takes a fraction of a millisecond. A busy
 * machine may delay a few, never most of them.
 */
async function expectRefusals(client: Host, target: Target, count: number, options: ConnectOptions): Promise<void> {
  const times: number[] = [];
  while (times.length < count) {
    const { kind, ms } = await client.connect(target, options);
    expect(kind).toBe('refused');
    expect(ms).toBeLessThan(patient(900));
    times.push(ms);
  }
  times.sort((a, b) => a - b);
  expect(times[Math.floor(count * 0.9)]).toBeLessThan(REFUSED_MS);
}

/** Connects in rounds until each of `names` has answered, or the rounds are over. */
async function connectUntilAll(
  client: Host,
  target: Target,
  options: ConnectOptions,
  names: readonly HostName[],
): Promise<Outcome[]> {
  const outcomes: Outcome[] = [];
  for (let round = 0; round < MAX_ROUNDS; round++) {
    outcomes.push(...(await client.connectMany(target, ROUND, options)));
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
