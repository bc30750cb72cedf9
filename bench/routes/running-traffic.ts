import { createSocket, type Socket } from 'node:dgram';
import { setTimeout as delay } from 'node:timers/promises';
import type { RouteMode } from '../../src/routes/index.ts';
import { numberedNode } from '../../test/fakes/routes/node-objects.ts';
import { type Figure, oursAtMost } from '../report/index.ts';
import { withinNamespace } from '../within-namespace.ts';
import { otherNodes, type RouteCase, RouteWorld } from './route-world.ts';
import { createTwoNodes, type NodeWithPod, podAddress } from './two-nodes.ts';

/** Nodes in the cluster, of which two are there. */
const NODES = 300;
const ROUNDS = 3;
const PORT = 8081;
const EVERY_MS = 2;
/** Answers under way arrive within this time, whatever else the machine does. */
const DRAIN_MS = 500;

/** What a stream of questions from pod to pod notices when the agents of both nodes start again, in the same mode and in another. */
export async function runningTraffic(): Promise<Figure[]> {
  const figures: Figure[] = [];
  for (const family of ['IPv4', 'IPv6'] as const) {
    const nodes = createTwoNodes(`running-${family}`, 1430);
    const agents = new Agents(family, nodes);
    const stream = await startStream(family, nodes);
    await agents.bothAtOnce('host-gw');
    const lost = { 'host-gw': 0, vxlan: 0 };
    const gaps = { atOnce: [] as number[], rolling: [] as number[] };
    for (let round = 0; round < ROUNDS; round++) {
      for (const mode of ['host-gw', 'vxlan'] as const) {
        await agents.bothAtOnce(mode);
        lost[mode] += (await stream.during(() => agents.oneAfterTheOther(mode))).lost;
      }
      // Each change begins with what is left long after the one before: no tunnel where none is wanted.
      for (const mode of ['host-gw', 'vxlan'] as const) {
        const change = async () => {
          await agents.bothAtOnce(mode);
          if (mode === 'host-gw') await agents.tunnelsAreGone();
        };
        gaps.atOnce.push((await stream.during(change)).longestGapMs);
      }
      for (const mode of ['auto', 'host-gw', 'auto', 'vxlan'] as const) {
        gaps.rolling.push((await stream.during(() => agents.oneAfterTheOther(mode))).longestGapMs);
      }
    }
    stream.end();
    await agents.stop();
    for (const { node, pod } of nodes) for (const namespace of [pod, node]) namespace.remove();
    const figure = (what: string, unit: string, ours: number, atMost: number): Figure => ({
      what: `${family}: ${what}`,
      unit,
      ours,
      peer: undefined,
      peerName: '',
      target: oursAtMost(atMost),
    });
    figures.push(
      figure(`restart, host-gw: packets lost in ${ROUNDS}`, '', lost['host-gw'], 0),
      figure(`restart, vxlan: packets lost in ${ROUNDS}`, '', lost.vxlan, 0),
      figure(
        'host-gw <-> vxlan, both nodes at once: longest time without an answer',
        'ms',
        Math.max(...gaps.atOnce),
        100,
      ),
      figure('host-gw <-> vxlan, by way of auto, node after node: the same', 'ms', Math.max(...gaps.rolling), 100),
    );
  }
  return figures;
}

/** The routes of both nodes, as agents that come and go leave them. */
class Agents {
  readonly #family: RouteCase['family'];
  readonly #nodes: readonly NodeWithPod[];
  readonly #worlds = new Map<number, RouteWorld>();

  constructor(family: RouteCase['family'], nodes: readonly NodeWithPod[]) {
    this.#family = family;
    this.#nodes = nodes;
  }

  async bothAtOnce(mode: RouteMode): Promise<void> {
    await Promise.all(this.#nodes.map((node) => this.#restart(node, mode)));
  }

  async oneAfterTheOther(mode: RouteMode): Promise<void> {
    for (const node of this.#nodes) await this.#restart(node, mode);
  }

  /** Resolves when the nodes have no VXLAN device: it outlives its use. */
  async tunnelsAreGone(): Promise<void> {
    for (const { node } of this.#nodes) {
      while (node.run('ip', '-o', 'link', 'show', 'type', 'vxlan') !== '') await delay(500);
    }
  }

  async stop(): Promise<void> {
    for (const world of this.#worlds.values()) await world.stop();
    this.#worlds.clear();
  }

  async #restart({ number, node }: NodeWithPod, mode: RouteMode): Promise<void> {
    await this.#worlds.get(number)?.stop();
    const world = new RouteWorld({ family: this.#family, mode }, node, { own: number });
    this.#worlds.set(number, world);
    await world.start([numberedNode(1), ...otherNodes(NODES)]);
  }
}

interface Question {
  readonly at: number;
  isAnswered: boolean;
}

interface Noticed {
  readonly lost: number;
  readonly longestGapMs: number;
}

/** Asks one pod from the other all the time, by UDP: nothing is sent again. */
async function startStream(family: RouteCase['family'], [one, two]: readonly [NodeWithPod, NodeWithPod]) {
  const server = await socketIn(two, family);
  server.on('message', (message, { address, port }) => server.send(message, port, address));
  const client = await socketIn(one, family);
  const target = podAddress(two.number, family);
  let first = 0;
  let questions: Question[] = [];
  client.on('message', (message) => {
    const question = questions[Number(message) - first];
    if (question) question.isAnswered = true;
  });
  const timer = setInterval(() => {
    const number = first + questions.length;
    questions.push({ at: performance.now(), isAnswered: false });
    // Without a route the kernel says so: a lost packet.
    client.send(String(number), PORT, target, () => {});
  }, EVERY_MS);
  return {
    /** What becomes of the questions asked during `change`. */
    async during(change: () => Promise<void>): Promise<Noticed> {
      first += questions.length;
      questions = [];
      await change();
      const asked = questions.length;
      await delay(DRAIN_MS);
      return noticedIn(questions.slice(0, asked));
    },
    end() {
      clearInterval(timer);
      for (const socket of [client, server]) socket.close();
    },
  };
}

/** From the last question that was answered before some that were not to the first that was behind them. */
function noticedIn(questions: readonly Question[]): Noticed {
  let lost = 0;
  let longestGapMs = 0;
  let answeredAt = questions[0]?.at ?? 0;
  let isInGap = false;
  for (const { at, isAnswered } of questions) {
    if (!isAnswered) lost++;
    else {
      if (isInGap) longestGapMs = Math.max(longestGapMs, at - answeredAt);
      answeredAt = at;
    }
    isInGap = !isAnswered;
  }
  // Nobody answers to the end.
  if (isInGap) longestGapMs = Math.max(longestGapMs, questions.at(-1)!.at - answeredAt);
  return { lost, longestGapMs };
}

async function socketIn({ number, pod }: NodeWithPod, family: RouteCase['family']): Promise<Socket> {
  const socket = createSocket(family === 'IPv4' ? 'udp4' : 'udp6');
  // Answers of the kernel that nobody is there are lost packets.
  socket.on('error', () => {});
  await withinNamespace(
    pod.path,
    () => new Promise<void>((resolve) => socket.bind(PORT, podAddress(number, family), resolve)),
  );
  return socket;
}
