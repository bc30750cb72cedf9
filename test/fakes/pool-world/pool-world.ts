import { type IpSpan, parseCidr, spanOfCidr, spansOverlap } from '../../../src/core/index.ts';
import type { PodCIDRBlock } from '../../../src/kube/index.ts';
import { parsePools } from '../../../src/pools/index.ts';
import { BlockStore } from './block-store.ts';
import { Machine, type Sent } from './machine.ts';

/** What a run went through. */
export interface PoolRun {
  /** What must never be, with the moment. */
  readonly violations: string[];
  /** How often each kind of request was done, and how often somebody was faster. */
  readonly counts: Record<string, number>;
}

/** Something on its way between a machine and the store. */
interface Message {
  readonly at: number;
  readonly deliver: () => void;
}

/** With 16 blocks of the smaller size, or 8: too few for six machines. */
const POOLS = ['10.0.0.0/26', '10.0.0.0/27'];
/** What a process waits for an answer. */
const PATIENCE_MS = 15_000;

/**
 * Up to six machines and one pool: late, doubled and lost requests, lost answers, lagging and stalled watches, crashes, clocks of other
 * speeds, machines that are cut off, that end, that come back with the name but not the disk, Nodes that are deleted and
 * registered again, and two block sizes at once. All is decided by one seed. Time is in milliseconds.
 */
export class PoolWorld {
  readonly run: PoolRun = { violations: [], counts: {} };
  readonly #random: () => number;
  readonly #store = new BlockStore();
  readonly #pool: IpSpan;
  readonly #machines: Machine[] = [];
  readonly #messages: Message[] = [];
  /** Until when a machine hears and reaches nobody. */
  readonly #cutOff = new Map<Machine, number>();
  /** Until when a machine hears nothing of Nodes. */
  readonly #nodesStall = new Map<Machine, number>();
  #isQuiet = false;
  #t = 0;

  constructor(seed: number) {
    this.#random = randomFrom(seed);
    const isMixed = this.#random() < 0.5;
    const cidr = this.#pick(POOLS);
    this.#pool = spanOf(cidr);
    for (let index = 2 + Math.floor(this.#random() * 5); index > 0; index--) {
      const blockSize = isMixed && this.#random() < 0.5 ? 29 : 30;
      const pools = parsePools([{ cidr, blockSize }]);
      const name = `node-${index}`;
      this.#store.setNode(name, true);
      this.#machines.push(new Machine(name, this.#store, pools, this.#random));
    }
  }

  /** Trouble for so many steps, then quiet until everything has come to rest. */
  play(steps: number): PoolRun {
    for (let step = 0; step < steps; step++) {
      this.#trouble();
      const dice = this.#random();
      this.#pass(this.#random() * (dice < 0.75 ? 1_500 : dice < 0.97 ? 8_000 : 40_000));
    }
    this.#isQuiet = true;
    this.#cutOff.clear();
    this.#nodesStall.clear();
    for (const machine of this.#machines) {
      if (!machine.isAlive) this.#store.setNode(machine.name, false);
      else {
        if (!machine.isRunning) machine.start();
        if (!this.#store.nodes.has(machine.name)) this.#store.setNode(machine.name, true);
      }
    }
    for (let step = 0; step < 50; step++) this.#pass(8_000);
    this.#judgeEnd();
    return this.run;
  }

  #trouble(): void {
    const machine = this.#pick(this.#machines);
    const dice = this.#random() * 100;
    if (!machine.isAlive) {
      // Its Node is deleted some time; a new machine gets its name.
      if (dice < 10) this.#store.setNode(machine.name, false);
      else if (dice < 14) this.#reborn(machine);
    } else if (!machine.isRunning) {
      if (dice < 40) machine.start();
    } else if (dice < 3) machine.crash();
    else if (dice < 4) this.#end(machine);
    else if (dice < 6) this.#store.setNode(machine.name, false);
    else if (dice < 12) this.#register(machine);
    else if (dice < 14) this.#cutOff.set(machine, this.#t + this.#random() * 150_000);
    else if (dice < 17) this.#nodesStall.set(machine, this.#t + this.#random() * 200_000);
    else if (dice < 60) this.#changePods(machine);
  }

  /** As kubelet does it: only when the Node is not there. */
  #register({ name }: Machine): void {
    if (!this.#store.nodes.has(name)) this.#store.setNode(name, true);
  }

  #end(machine: Machine): void {
    machine.crash();
    machine.pods.clear();
    machine.isAlive = false;
  }

  #reborn(machine: Machine): void {
    machine.isAlive = true;
    this.#register(machine);
    machine.start();
  }

  #changePods(machine: Machine): void {
    const usable = machine.usable(this.#t);
    if (this.#random() < 0.55 && usable.length > 0) {
      const cidr = this.#pick(usable);
      if (machine.use(cidr).free > 0) machine.pods.set(cidr, machine.use(cidr).used + 1);
    } else if (machine.pods.size > 0) {
      const cidr = this.#pick([...machine.pods.keys()]);
      const left = machine.use(cidr).used - (this.#random() < 0.3 ? machine.use(cidr).used : 1);
      if (left > 0) machine.pods.set(cidr, left);
      else machine.pods.delete(cidr);
    }
  }

  /** Lets time pass: messages arrive, watches tell, machines decide. */
  #pass(ms: number): void {
    this.#t += ms;
    this.#deliver();
    for (const machine of this.#machines) {
      if (this.#isCutOff(machine)) machine.decide(this.#t);
      else {
        const lag = () => (this.#isQuiet ? 1e9 : this.#random() < 0.3 ? 0 : Math.ceil(this.#random() * 6));
        machine.hear(lag(), this.#t < (this.#nodesStall.get(machine) ?? 0) ? 0 : lag());
        for (let sent = machine.decide(this.#t); sent; sent = machine.decide(this.#t)) {
          this.#send(machine, sent);
          this.#deliver();
          if (!this.#isQuiet) break;
          machine.hear(1e9, 1e9);
        }
      }
      this.#look(machine.name);
    }
    this.#giveUp();
  }

  #isCutOff(machine: Machine): boolean {
    return this.#t < (this.#cutOff.get(machine) ?? 0);
  }

  /** A cut off machine waits for its answer in vain. */
  #giveUp(): void {
    for (const machine of this.#machines) {
      const { sent } = machine;
      if (sent && this.#isCutOff(machine)) machine.hearAnswer(sent, { kind: 'failed', retryAfterMs: 0 }, this.#t);
    }
  }

  #send(machine: Machine, sent: Sent): void {
    // What gives a range away is worth the most trouble.
    const isBad = !this.#isQuiet && this.#random() < (sent.request.kind === 'release' ? 0.7 : 0.3);
    const copies = isBad ? Math.floor(this.#random() * 3) : 1;
    for (let copy = 0; copy < copies; copy++) {
      const at = this.#t + (isBad ? this.#random() * 60_000 : 0);
      this.#messages.push({ at, deliver: () => this.#arrive(machine, sent) });
    }
    const giveUp = () => machine.hearAnswer(sent, { kind: 'failed', retryAfterMs: 0 }, this.#t);
    this.#messages.push({ at: this.#t + PATIENCE_MS, deliver: giveUp });
  }

  #arrive(machine: Machine, sent: Sent): void {
    const { request, sender } = sent;
    const outcome = this.#store.answer(request, sender);
    if (request.kind === 'release' && outcome.kind === 'done') this.#judgeRelease(request.block, sender.node);
    const key = `${request.kind} ${outcome.kind}`;
    this.run.counts[key] = (this.run.counts[key] ?? 0) + 1;
    this.#look(`${sender.session}: ${key}`);
    const isLost = !this.#isQuiet && this.#random() < 0.15;
    if (isLost) return;
    const late = this.#isQuiet ? 0 : this.#random() * 1_000;
    this.#messages.push({ at: this.#t + late, deliver: () => machine.hearAnswer(sent, outcome, this.#t) });
  }

  /** What is due, in the order of its time. */
  #deliver(): void {
    for (;;) {
      let first = -1;
      this.#messages.forEach(({ at }, index) => {
        if (at <= this.#t && (first < 0 || at < this.#messages[first]!.at)) first = index;
      });
      if (first < 0) return;
      this.#messages.splice(first, 1)[0]!.deliver();
    }
  }

  /** No address is usable on two machines. */
  #look(after: string): void {
    const given: (readonly [machine: Machine, cidr: string])[] = [];
    for (const machine of this.#machines) {
      for (const cidr of machine.usable(this.#t)) {
        const other = given.find((one) => one[0] !== machine && overlap(one[1], cidr));
        if (other) this.#violated(`${cidr} on ${machine.name} and ${other[1]} on ${other[0].name}, after ${after}`);
        given.push([machine, cidr]);
      }
    }
  }

  /** Nobody gives back what is used, or what its node uses. */
  #judgeRelease({ spec: { cidr, node } }: PodCIDRBlock, by: string): void {
    const owner = this.#machines.find(({ name }) => name === node);
    if (owner?.usable(this.#t).includes(cidr)) this.#violated(`${by} releases ${cidr}, which ${node} gives out`);
    if (node === by && owner && owner.use(cidr).used > 0) this.#violated(`${by} releases its own ${cidr}, with pods`);
  }

  /** Every block is that of a machine which is there, and every machine has what it needs while the pool has any. */
  #judgeEnd(): void {
    if (!this.#machines.some(({ isAlive }) => isAlive)) return;
    const blocks = [...this.#store.blocks.values()];
    for (const { spec } of blocks) {
      const owner = this.#machines.find(({ name }) => name === spec.node);
      const isWell = spec.state === 'confirmed' && owner?.isAlive && this.#store.nodes.get(spec.node) === spec.nodeUID;
      if (!isWell) this.#violated(`block ${spec.cidr} is lost: ${JSON.stringify(spec)}`);
    }
    for (const machine of this.#machines.filter(({ isAlive }) => isAlive)) {
      const usable = machine.usable(this.#t);
      const free = usable.reduce((sum, cidr) => sum + machine.use(cidr).free, 0);
      if (free < 1 && this.#hasRoomFor(machine, blocks))
        this.#violated(`${machine.name} has ${usable.length} blocks with ${free} addresses left`);
      const empty = usable.filter((cidr) => machine.use(cidr).used === 0).length;
      if (empty > 1 && free > 12) this.#violated(`${machine.name} keeps ${empty} empty blocks`);
    }
  }

  /** Whether a block of the machine's size is free. Where sizes differ, much may be free and no room for a large one. */
  #hasRoomFor({ blockSize }: Machine, blocks: readonly PodCIDRBlock[]): boolean {
    const { family, first, last } = this.#pool;
    const size = 2n ** BigInt(32 - blockSize);
    for (let at = first; at < last; at += size) {
      const room = { family, first: at, last: at + size - 1n };
      if (!blocks.some(({ spec }) => spansOverlap(spanOf(spec.cidr), room))) return true;
    }
    return false;
  }

  #violated(what: string): void {
    this.run.violations.push(`${(this.#t / 1000).toFixed(1)} s: ${what}`);
  }

  #pick<T>(list: readonly T[]): T {
    return list[Math.floor(this.#random() * list.length)]!;
  }
}

const spans = new Map<string, IpSpan>();

function overlap(a: string, b: string): boolean {
  return a === b || spansOverlap(spanOf(a), spanOf(b));
}

/** Asked a million times for the same few. */
function spanOf(cidr: string): IpSpan {
  const span = spans.get(cidr) ?? spanOfCidr(parseCidr(cidr));
  spans.set(cidr, span);
  return span;
}

/** mulberry32: numbers from 0 to 1 (exclusive). */
function randomFrom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
