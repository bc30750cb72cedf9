import fc from 'fast-check';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { withPort } from '../../../src/core/index.ts';
import type { KubeObject } from '../../../src/kube/index.ts';
import { useOwnLockFile } from '../iptables/fixtures.ts';
import { ExplainWorld, on, served, TARGET } from './explain-world.ts';
import { type Healthy, healthyCases, healthyObjects, placeOf } from './healthy.ts';

const SERVICES = 24;
/**
 * With affinity all tries are one; hence only with one endpoint. Enough that with two endpoints, one of them broken,
 * both are met: all alike by chance once in a million.
 */
const TRIES = 20;

const SILENT = 8099;

/** In each mode. */
const HEALTHY = 70;
const HEALTHY_TRIES = 2;
const ALL_WELL = `works ${Array(HEALTHY_TRIES).fill('answered').join()}`;

interface Drawn {
  readonly ips: readonly ('web' | 'web2')[];
  readonly port: number;
  readonly family: 'IPv4' | 'IPv6';
  readonly protocol: 'TCP' | 'UDP';
  readonly from: 'client' | 'web' | 'node';
  readonly affinity: boolean;
}

const drawn: fc.Arbitrary<Drawn> = fc.record({
  ips: fc.constantFrom(['web'], ['web2'], ['web', 'web2']),
  // 8098 is open in one of both pods.
  port: fc.constantFrom(TARGET, TARGET, 8098, SILENT),
  family: fc.constantFrom('IPv4', 'IPv6'),
  protocol: fc.constantFrom('TCP', 'TCP', 'UDP'),
  from: fc.constantFrom('client', 'web', 'node'),
  affinity: fc.boolean(),
});
const cases = fc.sample(drawn, SERVICES).map((one, index) => ({
  ...one,
  index,
  vip: one.family === 'IPv4' ? `10.96.7.${index + 1}` : `fd00:96::7:${index + 1}`,
}));

/**
 * Verdicts about random connections, each held against real ones: works means that all are answered, partly that some are, fails
 * that none is. Endpoints are of this node alone: of others no verdict is given. Then connections of every kind, with nothing in
 * their way, of which all must be said to work.
 *
 * @param flags of the agent
 */
export function testVerdicts(flags: readonly string[]): void {
  let world: ExplainWorld;

  beforeAll(async () => {
    useOwnLockFile();
    world = new ExplainWorld();
    const { node, web } = world;
    const objects = cases.flatMap(({ ips, port, protocol, affinity, family, index, vip }): KubeObject[] =>
      served(
        `random/service-${index}`,
        vip,
        ips.map((name) => on(node, world[name].ip(family))),
        { ports: [{ port: 80, protocol }], ...(affinity && ips.length === 1 && { sessionAffinity: 'ClientIP' }) },
        port,
      ),
    );
    await world.begin([...objects, ...healthyObjects(world)], ...flags);
    await web.serve({ port: 8098 });
    await web.serve({ port: 8098, protocol: 'UDP' });
  }, 300_000);
  afterAll(() => world.end());

  it.each(cases)('service $index: $family $protocol from $from to $ips:$port', async (one) => {
    const { family, protocol, from, vip } = one;
    const host = world[from];
    const source = from === 'node' ? 'node' : host.ip(family);
    const destination = family === 'IPv4' ? `${vip}:80` : `[${vip}]:80`;
    const [answer] = await world.askHere([{ destination, source, protocol: protocol.toLowerCase() }]);
    const options = { timeoutMs: 1000, concurrency: 4 };
    const outcomes = await host.connectMany({ ip: vip, port: 80, protocol }, TRIES, options);
    const good = outcomes.filter(({ kind }) => kind === 'answered').length;
    const really = good === TRIES ? 'works' : good === 0 ? 'fails' : 'partly';
    expect(answer!.verdict, `${answer!.cause} ${good} of ${TRIES} were answered`).toBe(really);
  });

  it(`${HEALTHY} healthy connections of every kind`, async () => {
    const asked = healthyCases(HEALTHY).map((one) => ({ ...one, ...placeOf(one, world) }));
    const questions = asked.map(({ from, source, ip, port, protocol }) => ({
      destination: withPort(ip, port),
      source: from === 'node' ? 'node' : source,
      protocol: protocol.toLowerCase(),
    }));
    const answers = await world.askHere(questions);
    const wrong: string[] = [];
    for (const [index, one] of asked.entries()) {
      const { from, ip, port, protocol } = one;
      const outcomes = await world[from].connectMany({ ip, port, protocol }, HEALTHY_TRIES);
      const { verdict, cause } = answers[index]!;
      const said = `${verdict} ${outcomes.map(({ kind }) => kind).join()}`;
      if (said !== ALL_WELL) wrong.push(`${told(one)}: ${said}: ${cause}`);
    }
    expect(wrong).toEqual([]);
  }, 300_000);
}

function told({ via, ips, family, protocol, from, affinity, external }: Healthy): string {
  const policy = external === 'Local' ? ', externalTrafficPolicy: Local' : '';
  return `${family} ${protocol} from ${from} by ${via} to ${ips}${affinity ? ', affinity' : ''}${policy}`;
}
