import { numberedNode } from '../../test/fakes/routes/node-objects.ts';
import { LoopMeter, settledMemory } from '../loop-meter.ts';
import { type Figure, median, oursAtMost } from '../report/index.ts';
import { CASES, createNodeNamespace, nameOf, otherNodes, type RouteCase, RouteWorld } from './route-world.ts';

const NODES = 5000;
const ROUNDS = 3;
const MAX_KEPT_MIB = 8;
const MAX_HOLD_MS = 50;

/** What many Nodes cost the agent: how much memory they keep, and how long the event loop stands still for them at most. */
export async function burden(): Promise<Figure[]> {
  const figures: Figure[] = [];
  for (const each of CASES) {
    const rounds: Measured[] = [];
    for (let round = 0; round < ROUNDS; round++) rounds.push(await measure(each));
    const figure = (key: keyof Measured, what: string, unit: string, atMost: number): Figure => ({
      what: `${nameOf(each)}: ${what}`,
      unit,
      ours: median(rounds.map((round) => round[key])),
      peer: undefined,
      peerName: '',
      target: oursAtMost(atMost),
    });
    figures.push(
      figure('keptMiB', `memory for ${NODES} Nodes`, 'MiB', MAX_KEPT_MIB),
      figure('start', 'longest hold of the event loop, start', 'ms', MAX_HOLD_MS),
      figure('verification', 'the same, verification', 'ms', MAX_HOLD_MS),
      figure('reconcile', 'the same, all compared and written', 'ms', MAX_HOLD_MS),
    );
  }
  return figures;
}

interface Measured {
  readonly keptMiB: number;
  readonly start: number;
  readonly verification: number;
  readonly reconcile: number;
}

async function measure(each: RouteCase): Promise<Measured> {
  const namespace = createNodeNamespace('burden');
  const before = await settledMemory();
  const world = new RouteWorld(each, namespace);
  const start = await holdOf(() => world.start(otherNodes(NODES)));
  const keptMiB = (await settledMemory()) - before;
  const verification = await holdOf(() => world.verify(numberedNode(NODES + 10)));
  const range = each.family === 'IPv4' ? '172.30.0.0/16' : 'fd00:96::/112';
  const reconcile = await holdOf(() => world.reconcile(range));
  await world.stop();
  namespace.remove();
  return { keptMiB, start, verification, reconcile };
}

async function holdOf(work: () => Promise<unknown>): Promise<number> {
  const meter = new LoopMeter();
  meter.start();
  await work();
  return meter.stop().longest.ms;
}
