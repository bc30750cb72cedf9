import fc from 'fast-check';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { KubeObject } from '../../../src/kube/index.ts';
import { removeAll } from '../lab.ts';
import { ExplainWorld, on, served, TARGET } from './explain-world.ts';

// Verdicts about random connections, each held against real ones: works means that all are answered, partly that some are, fails
// that none is. Endpoints are of this node alone: of others no verdict is given.

const SERVICES = 24;
/** With affinity all tries are one; hence only with one endpoint. Enough that with two endpoints, one of them broken, both are met: all alike by chance once in a million. */
const TRIES = 20;

const world = new ExplainWorld();
const { node, web, client } = world;
const SILENT = 8099;

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

beforeAll(async () => {
  const objects = cases.flatMap(({ ips, port, family, protocol, affinity, index, vip }): KubeObject[] =>
    served(
      `random/service-${index}`,
      vip,
      ips.map((name) => on(node, world[name].ip(family))),
      { ports: [{ port: 80, protocol }], ...(affinity && ips.length === 1 && { sessionAffinity: 'ClientIP' }) },
      port,
    ),
  );
  await world.begin(objects);
  await web.serve({ port: 8098 });
  await web.serve({ port: 8098, protocol: 'UDP' });
}, 300_000);
afterAll(async () => {
  await world.end();
  removeAll();
});

const hosts = { client, web, node };

it.each(cases)(
  'service $index: $family $protocol from $from to $ips:$port',
  async ({ family, protocol, from, vip }) => {
    const host = hosts[from];
    const source = from === 'node' ? 'node' : host.ip(family);
    const answer = await world.ask(
      family === 'IPv4' ? `${vip}:80` : `[${vip}]:80`,
      source,
      '--proto',
      protocol.toLowerCase(),
    );
    const outcomes = await host.connectMany({ ip: vip, port: 80, protocol }, TRIES, {
      timeoutMs: 1000,
      concurrency: 4,
    });
    const good = outcomes.filter(({ kind }) => kind === 'answered').length;
    const really = good === TRIES ? 'works' : good === 0 ? 'fails' : 'partly';
    expect(answer.verdict, `${answer.cause} ${good} of ${TRIES} were answered`).toBe(really);
  },
);
