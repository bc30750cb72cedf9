import { type Cidr, cidrContains, formatCidr } from '../../../core/index.ts';
import { type Node, nodeNamed, type ObjectEvent, ObjectsOf } from '../../../kube/index.ts';
import { podCidrsOf } from '../../../proxy/index.ts';
import type { OwnRanges, RangeSource } from '../pod-ranges.ts';

export interface NodeRangesOptions {
  readonly nodeName: string;
  /** In place of those of the Node object; empty: those. */
  readonly fixed: readonly Cidr[];
  /** Ranges that the pods of this node have addresses of. */
  readonly living: () => readonly Cidr[];
}

/**
 * The ranges of nodes are those that their Node objects name.
 *
 * When this node is registered again and has others then, pods of before live on in their old range: it stays this node's until
 * the last one is gone. Which ranges those are is found by the notes about pods, so that a restart in between changes nothing.
 */
export class NodeRanges implements RangeSource {
  readonly resources;
  readonly complete = Promise.resolve();
  readonly #options: NodeRangesOptions;
  readonly #nodes: ObjectsOf<'Node'>;
  readonly #had = new Set<string>();
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
      held: [...current, ...this.#former],
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
    const text = formatCidr(range);
    return this.#had.has(text) && !this.own().held.some((held) => formatCidr(held) === text);
  }

  #current(): readonly Cidr[] {
    const { nodeName, fixed } = this.#options;
    return fixed.length > 0 ? fixed : podCidrsOf(this.#nodes.get(nodeName));
  }

  /** Returns whether they are others than before. */
  #findFormer(): boolean {
    const { fixed, living } = this.#options;
    if (fixed.length > 0) return false;
    const before = this.#former.map(formatCidr).join();
    const current = this.#current();
    this.#former = living().filter((range) => !current.some((other) => cidrContains(other, range.address)));
    for (const range of [...current, ...this.#former]) this.#had.add(formatCidr(range));
    return this.#former.map(formatCidr).join() !== before;
  }

  #why(): string {
    const { nodeName } = this.#options;
    if (!this.#nodes.get(nodeName)) return `there is no Node object "${nodeName}"`;
    return `Node "${nodeName}" has no podCIDRs: kube-controller-manager gives them with --allocate-node-cidrs; where nobody does, use --pod-cidrs-from=pool`;
  }
}
