import { type Cidr, cidrCovers, cidrEquals, formatCidr, ipEquals } from '../../../core/index.ts';
import { type Node, nodeNamed, type ObjectEvent, ObjectsOf } from '../../../kube/index.ts';
import { podCidrsOf } from '../../../proxy/index.ts';
import type { OwnRanges, RangeSource } from '../pod-ranges.ts';

export interface NodeRangesOptions {
  readonly nodeName: string;
  /** In place of those of the Node object; empty: those. */
  readonly fixed: readonly Cidr[];
  /** Ranges that the pods of this node have addresses of, as far as their notes tell. */
  readonly living: () => readonly Cidr[];
  /** How many addresses of a range are reserved for pods. */
  readonly used: (range: Cidr) => number;
}

/**
 * The ranges of nodes are those that their Node objects name.
 *
 * When this node is registered again and has others then, pods of before live on in their old range: it stays this node's until
 * the last one is gone. Which ranges those are is found by the notes about pods, so that a restart in between changes nothing, and
 * by the reservations of addresses in ranges that the Node had. While there is no Node object, what it said last counts for pods
 * that live.
 */
export class NodeRanges implements RangeSource {
  readonly resources;
  readonly complete = Promise.resolve();
  readonly #options: NodeRangesOptions;
  readonly #nodes: ObjectsOf<'Node'>;
  readonly #had = new Map<string, Cidr>();
  /** What the Node object said last. */
  #last: readonly Cidr[] = [];
  #known: string | undefined;
  /** Ranges of before that pods have addresses of. */
  #former: readonly Cidr[] = [];
  #changed: (nodes: readonly string[]) => void = () => {};

  constructor(options: NodeRangesOptions) {
    const { nodeName } = options;
    this.#options = options;
    this.resources = [nodeNamed(nodeName)];
    this.#nodes = new ObjectsOf('Node', ({ metadata }) => metadata.name === nodeName);
  }

  own(): OwnRanges {
    const current = this.#current();
    return {
      sets: current.map((range) => [range]),
      lacking: current.length > 0 ? '' : this.#why(),
      held: [...this.#present(), ...this.#former],
    };
  }

  ofNode({ metadata: { name } }: Node): readonly string[] | undefined {
    const { nodeName, fixed } = this.#options;
    return name === nodeName && fixed.length === 0 ? this.own().held.map(formatCidr) : undefined;
  }

  event(event: ObjectEvent): readonly string[] {
    const name = this.#nodes.apply(event);
    if (name === undefined) return [];
    const current = this.#current().map(formatCidr).join();
    if (current !== '') this.#last = this.#current();
    // The kubelet writes into the Node all the time.
    if (current !== this.#known) this.#findFormer();
    this.#known = current;
    return [name];
  }

  synced(): void {}

  async start(changed: (nodes: readonly string[]) => void): Promise<void> {
    this.#changed = changed;
  }

  async stop(): Promise<void> {
    this.#changed = () => {};
  }

  useChanged(): void {
    // Pods of other ranges than the present ones are no more made.
    if (this.#former.length > 0 && this.#findFormer()) this.#changed([this.#options.nodeName]);
  }

  isGone(range: Cidr): boolean {
    return this.#had.has(formatCidr(range)) && !this.own().held.some((held) => hasGatewayOf(range, held));
  }

  #current(): readonly Cidr[] {
    const { nodeName, fixed } = this.#options;
    return fixed.length > 0 ? fixed : podCidrsOf(this.#nodes.get(nodeName));
  }

  /** Also while the Node object is not there. */
  #present(): readonly Cidr[] {
    const current = this.#current();
    return current.length > 0 ? current : this.#last;
  }

  /** Returns whether they are others than before. */
  #findFormer(): boolean {
    const { fixed, living, used } = this.#options;
    if (fixed.length > 0) return false;
    const before = this.#former.map(formatCidr).join();
    const present = this.#present();
    const noted = new Map(living().map((range) => [formatCidr(range), range]));
    // Pods of a network without features leave no note.
    for (const [text, range] of this.#had) if (used(range) > 0) noted.set(text, range);
    // One that lies within another is its part: a gateway more would be in the way of the other's.
    const others = [...noted.values()].filter(
      (range) => !present.some((other) => cidrCovers(other, range) || shareGateway(range, other)),
    );
    this.#former = others.filter((range) => !others.some((other) => other !== range && cidrCovers(other, range)));
    for (const range of [...present, ...this.#former]) this.#had.set(formatCidr(range), range);
    return this.#former.map(formatCidr).join() !== before;
  }

  #why(): string {
    const { nodeName } = this.#options;
    if (!this.#nodes.get(nodeName)) return `there is no Node object "${nodeName}"`;
    return `Node "${nodeName}" has no podCIDRs: kube-controller-manager gives them with --allocate-node-cidrs; where nobody does, use --pod-cidrs-from=pool`;
  }
}

/** The kernel gives a link an IPv6 address once, with one prefix: two ranges that begin alike cannot have their gateway each. */
function shareGateway(range: Cidr, other: Cidr): boolean {
  return range.address.family === 'IPv6' && ipEquals(range.address, other.address);
}

/** Whether the gateway of a range may stay where another range is held. */
function hasGatewayOf(range: Cidr, held: Cidr): boolean {
  return cidrEquals(range, held) || (cidrCovers(held, range) && !shareGateway(range, held));
}
