import { numberedNode } from '../../test/fakes/routes/node-objects.ts';
import { type Figure, inTurns, ratioAtMost } from '../report/index.ts';
import { CASES, createNodeNamespace, nameOf, otherNodes, type RouteCase, RouteWorld } from './route-world.ts';

const MANY = 5000;
const FEW = 10;
const EVENTS = 300;
/** Until the compiler has seen enough of the code to optimise it. */
const WARM_UP = 150;
/** A Node that comes, changes its address and goes: a number that none of the others has. */
const CHANGING = MANY + 100;

/** One Node that comes, changes or goes: from the event to the kernel, by turns beside many other Nodes and beside few. */
export async function nodeEvents(): Promise<Figure[]> {
  const figures: Figure[] = [];
  for (const each of CASES) figures.push(await figureOf(each));
  return figures;
}

async function figureOf(each: RouteCase): Promise<Figure> {
  const sides = [await start(each, MANY), await start(each, FEW)];
  for (let event = 0; event < WARM_UP + EVENTS; event++) {
    for (const { world, ms } of sides) {
      const took = await oneEvent(world, event);
      if (event >= WARM_UP) ms.push(took);
    }
  }
  for (const { world } of sides) {
    await world.stop();
    world.namespace.remove();
  }
  const [many, few] = sides.map(({ ms }) => ms);
  return {
    what: `${nameOf(each)}: event to kernel, median`,
    unit: 'ms',
    ...inTurns(many!, few!),
    peerName: `beside ${FEW} Nodes`,
    target: ratioAtMost(1.3),
  };
}

async function start(each: RouteCase, nodes: number) {
  const world = new RouteWorld(each, createNodeNamespace(`events-${nodes}`));
  await world.start(otherNodes(nodes));
  return { world, ms: [] as number[] };
}

function oneEvent(world: RouteWorld, event: number): Promise<number> {
  const [coming, moved] = [numberedNode(CHANGING), numberedNode(CHANGING, { ips: ['10.0.250.1', 'fd00::fa01'] })];
  switch (event % 3) {
    case 0:
      return world.change(coming);
    case 1:
      return world.change(moved);
    default:
      return world.remove(coming.metadata.name);
  }
}
