import { compareText } from '../core/index.ts';
import type { ObjectEvent, PodCIDRBlock } from '../kube/index.ts';
import { isConfirmed } from './block-view.ts';

/**
 * The ranges that blocks give to nodes: what routes lead to, and what a node may use where blocks come from manifests. Nobody
 * claims or renews them there, and whoever writes the manifests sees to it that no range is given twice. The cost of an
 * event does not depend on how many blocks or nodes there are.
 */
export class GivenBlocks {
  /** Of each node that has some, by name. */
  readonly #byNode = new Map<string, Map<string, PodCIDRBlock>>();
  readonly #nodeOf = new Map<string, string>();

  /**
   * Takes an event of any kind in.
   *
   * @returns the nodes whose ranges may be others than before
   */
  apply({ type, object }: ObjectEvent): readonly string[] {
    if (object.kind !== 'PodCIDRBlock') return [];
    const { name } = object.metadata;
    const before = this.#nodeOf.get(name);
    if (type !== 'deleted' && isConfirmed(object.spec)) {
      const { node, cidr } = object.spec;
      if (before === node && this.#byNode.get(node)?.get(name)?.spec.cidr === cidr) return [];
      if (before !== undefined) this.#remove(name, before);
      this.#nodeOf.set(name, node);
      const ofNode = this.#byNode.get(node);
      if (ofNode) ofNode.set(name, object);
      else this.#byNode.set(node, new Map([[name, object]]));
      return before === undefined || before === node ? [node] : [before, node];
    }
    if (before === undefined) return [];
    this.#remove(name, before);
    return [before];
  }

  /** The ranges of a node, the oldest block first: what others know a node by does not change with each new one. */
  of(node: string): readonly string[] {
    const blocks = [...(this.#byNode.get(node)?.values() ?? [])];
    return blocks.sort(byAge).map(({ spec }) => spec.cidr);
  }

  #remove(name: string, node: string): void {
    this.#nodeOf.delete(name);
    const ofNode = this.#byNode.get(node)!;
    ofNode.delete(name);
    if (ofNode.size === 0) this.#byNode.delete(node);
  }
}

function byAge({ metadata: a }: PodCIDRBlock, { metadata: b }: PodCIDRBlock): number {
  return compareText(a.creationTimestamp ?? '', b.creationTimestamp ?? '') || compareText(a.name, b.name);
}
