import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { manifestOf, nodeObject, saveManifest } from '../../samples/manifests.ts';
import { useOwnLockFile } from '../iptables/fixtures.ts';
import { removeAll } from '../lab.ts';
import { patient } from '../patience.ts';
import { ExplainWorld, on, served } from './explain-world.ts';

// Objects that change all the time while somebody asks: the agent and the kernel are read one after the other.

const [WEB, GOING, NODE_PORT] = ['10.96.0.10', '10.96.0.11', 30080];
const MOVING_PORTS = [30090, 30091] as const;
useOwnLockFile();
const world = new ExplainWorld();
const { node, other, web, web2, client, outside } = world;

/** The `round`th state: who serves changes, one Service comes and goes, one has another NodePort each time. */
function save(round: number): void {
  const [one, two] = [on(node, web.ip()), on(node, web2.ip())];
  const endpoints = [[one], [two], [one, two]][round % 3]!;
  const ports = { type: 'NodePort', ports: [{ port: 80, nodePort: NODE_PORT }] } as const;
  const moving = { type: 'NodePort', ports: [{ port: 80, nodePort: MOVING_PORTS[round % 2]! }] } as const;
  const objects = [
    ...served('shop/web', WEB, endpoints, ports),
    ...(round % 2 === 0 ? served('shop/going', GOING, [one]) : []),
    ...served('shop/moving', '10.96.0.12', endpoints, moving),
    ...served('shop/none', '10.96.0.13', round % 2 === 0 ? [one] : []),
  ];
  saveManifest(world.manifests, 'all.yaml', manifestOf(nodeObject(node), nodeObject(other), ...objects));
}

beforeAll(() => world.prepare([]), 300_000);
afterAll(removeAll);

it.each([
  ['nftables', []],
  ['iptables', ['--iptables-variant', 'nft']],
  ['iptables', ['--iptables-variant', 'legacy']],
] as const)('what is said is true of some state: mode %s %s', { timeout: patient(180_000) }, async (mode, flags) => {
  save(0);
  await world.startAgent('--proxy-mode', mode, ...flags);
  /** Where connections work in every state, in some states alone: what else may be said then. */
  const cases: readonly (readonly [destination: string, source: string, codes: readonly string[]])[] = [
    ['svc/shop/web', client.ip(), []],
    [`${WEB}:80`, 'node', []],
    [`node:${NODE_PORT}`, outside.ip(), []],
    ['svc/shop/moving', client.ip(), []],
    ['svc/shop/going', client.ip(), ['dns-name']],
    [`node:${MOVING_PORTS[0]}`, outside.ip(), ['no-such-port']],
    ['svc/shop/none', client.ip(), ['no-endpoints']],
  ];
  const seen = new Set<string>();
  let isOver = false;
  const changes = (async () => {
    for (let round = 1; !isOver; round++) {
      save(round);
      await delay(patient([60, 250, 700][Math.floor(round / 8) % 3]!));
    }
  })();
  const wanted = cases.flatMap(([destination, , codes]) =>
    ['works', ...(codes.length > 0 ? ['fails'] : [])].map((verdict) => `${destination} ${verdict}`),
  );
  const isMissing = () => wanted.some((said) => !seen.has(said));
  const began = performance.now();
  const hasPassed = (ms: number) => performance.now() - began > patient(ms);
  try {
    while (!hasPassed(12_000) || (isMissing() && !hasPassed(90_000))) {
      for (const [destination, source, codes] of cases) {
        const [answer] = await world.askHere([{ destination, source }]);
        const { verdict, code, cause } = answer!;
        seen.add(`${destination} ${verdict}`);
        // On a machine that is busy the agent may not get done between two changes.
        if (verdict === 'works' || verdict === 'unknown') continue;
        expect(codes, `${destination}: ${cause}`).toContain(code);
        expect(verdict, cause).toBe('fails');
      }
    }
  } finally {
    isOver = true;
    await changes;
  }
  expect([...seen]).toEqual(expect.arrayContaining(wanted));
  await world.end();
  await world.command('cleanup');
});

it('an agent that starts, and has read and planned nothing yet, says nothing that is wrong of what goes on', {
  timeout: patient(180_000),
}, async ({ signal }) => {
  save(0);
  const many = Array.from({ length: 500 }, (_, n) =>
    served(`many/n${n}`, `10.96.${4 + (n >> 8)}.${n & 255}`, [on(node, web.ip())]),
  );
  saveManifest(world.manifests, 'many.yaml', manifestOf(...many.flat()));
  await world.startAgent();
  const seen = new Set<string>();
  for (let round = 0; round < 6; round++) {
    await world.end();
    let isOver = false;
    const started = world.startAgent().finally(() => {
      isOver = true;
    });
    // Who goes on asking when the test is over would take the next one's process to our namespace.
    while (!isOver && !signal.aborted) {
      // Nobody answers, until it does.
      const [answer] = await world.askHere([{ destination: 'svc/shop/web', source: client.ip() }]).catch(() => []);
      if (answer) seen.add(`${answer.verdict} ${answer.verdict === 'unknown' ? '' : answer.code}`);
      await delay(1);
    }
    await started;
  }
  expect([...seen].filter((said) => !['works null', 'unknown '].includes(said))).toEqual([]);
  expect(seen).toContain('works null');
  await world.end();
});
