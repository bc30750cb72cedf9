import type { ObjectEvent } from '../../../src/kube/index.ts';
import {
  type BlockOutcome,
  type BlockRequest,
  decide,
  learn,
  type Memory,
  NO_MEMORY,
  type Situation,
  sending,
  type UsableBlock,
} from '../../../src/pools/decide/index.ts';
import { BlockView, type Pool, type PoolTimes } from '../../../src/pools/index.ts';
import type { BlockStore, Sender } from './block-store.ts';

/** Minutes become tens of seconds, so that everything happens in a short run. */
export const MODEL_TIMES: PoolTimes = {
  reclaimMs: 60_000,
  fenceMs: 40_000,
  proofMs: 13_000,
  unfinishedMs: 20_000,
  emptyMs: 10_000,
  claimMs: 10_000,
  settleMs: 2_000,
  tickMs: 2_000,
};

/** A request of a process that may have ended since. */
export interface Sent {
  readonly request: BlockRequest;
  readonly sender: Sender;
  readonly sentAt: number;
}

/** One machine of the cluster: its pods, which outlive everything but its own end, and the agent's process, which may end. */
export class Machine {
  readonly name: string;
  /** Pods by range. */
  readonly pods = new Map<string, number>();
  readonly #store: BlockStore;
  readonly #pools: readonly Pool[];
  readonly #random: () => number;
  readonly #zero: number;
  readonly #speed: number;
  #sessions = 0;
  #view: BlockView;
  #memory: Memory = NO_MEMORY;
  #usable: readonly UsableBlock[] = [];
  #blocksHeard = 0;
  #nodesHeard = 0;
  #decideAt = 0;
  isAlive = true;
  /** Its agent is at work. */
  isRunning = true;
  /** The request that is waited for. */
  sent: Sent | undefined;

  constructor(name: string, store: BlockStore, pools: readonly Pool[], random: () => number) {
    this.name = name;
    this.#store = store;
    this.#pools = pools;
    this.#random = random;
    this.#zero = random() * 1e9;
    this.#speed = 0.85 + random() * 0.3;
    this.#view = new BlockView(name, pools);
    this.start();
  }

  /** A new process: all it knows is what it lists. */
  start(): void {
    this.#sessions++;
    this.#memory = NO_MEMORY;
    this.#usable = [];
    this.#decideAt = 0;
    this.sent = undefined;
    this.isRunning = true;
    this.#view = new BlockView(this.name, this.#pools);
    for (const [node, uid] of this.#store.nodes) this.#view.apply(nodeEvent(node, uid));
    for (const block of this.#store.blocks.values()) this.#view.apply({ type: 'added', object: block });
    this.#blocksHeard = this.#store.blockLog.length;
    this.#nodesHeard = this.#store.nodeLog.length;
  }

  crash(): void {
    this.isRunning = false;
    this.#usable = [];
    this.sent = undefined;
  }

  /** The two watches each tell up to so many of the changes that they have not told yet. */
  hear(blockChanges: number, nodeChanges: number): void {
    const { blockLog, nodeLog } = this.#store;
    for (; blockChanges > 0 && this.#blocksHeard < blockLog.length; blockChanges--) {
      const { name, block } = blockLog[this.#blocksHeard++]!;
      const known = this.#view.block(name);
      if (block) this.#view.apply({ type: 'updated', object: block });
      else if (known) this.#view.apply({ type: 'deleted', object: known });
      this.#decideAt = 0;
    }
    for (; nodeChanges > 0 && this.#nodesHeard < nodeLog.length; nodeChanges--) {
      const { name, uid } = nodeLog[this.#nodesHeard++]!;
      this.#view.apply(nodeEvent(name, uid));
      this.#decideAt = 0;
    }
  }

  /** Decides if it is time to, and returns what is to be sent. */
  decide(t: number): Sent | undefined {
    if (!this.isRunning || this.sent || this.#now(t) < this.#decideAt) return undefined;
    const { memory, usable, request, againMs } = decide(this.#situation(t), this.#memory);
    this.#memory = memory;
    this.#usable = usable;
    this.#decideAt = this.#now(t) + againMs;
    if (!request) return undefined;
    this.#memory = sending(request, memory);
    const sender = { node: this.name, session: this.#session };
    this.sent = { request, sender, sentAt: this.#now(t) };
    return this.sent;
  }

  /** The answer to a request, unless it is no longer waited for. */
  hearAnswer(sent: Sent, outcome: BlockOutcome, t: number): void {
    if (this.sent !== sent) return;
    this.sent = undefined;
    this.#decideAt = 0;
    this.#memory = learn(sent.request, { sentAt: sent.sentAt, outcome }, this.#situation(t), this.#memory);
  }

  /** The ranges that pods may get addresses from. */
  usable(t: number): readonly string[] {
    const now = this.#now(t);
    return this.#usable.flatMap(({ cidr, until }) => (now < until ? cidr : []));
  }

  get blockSize(): number {
    return this.#pools[0]!.blockSize;
  }

  use(cidr: string): { readonly used: number; readonly free: number } {
    const size = cidr.endsWith('/30') ? 4 : 8;
    const used = this.pods.get(cidr) ?? 0;
    return { used, free: size - used };
  }

  get #session(): string {
    return `${this.name}-${this.#sessions}`;
  }

  #now(t: number): number {
    return this.#zero + t * this.#speed;
  }

  #situation(t: number): Situation {
    return {
      now: this.#now(t),
      node: this.name,
      session: this.#session,
      view: this.#view,
      use: (cidr) => this.use(cidr),
      times: MODEL_TIMES,
      random: this.#random,
    };
  }
}

function nodeEvent(name: string, uid: string | undefined): ObjectEvent {
  const object = { kind: 'Node', metadata: { name, namespace: '', ...(uid !== undefined && { uid }) } } as const;
  return { type: uid === undefined ? 'deleted' : 'updated', object };
}
