import { type Cidr, cidrsOverlap, formatCidr, tryParseCidr } from '../../core/index.ts';
import { type ObjectEvent, ObjectsOf } from '../../kube/index.ts';
import type { OwnRanges } from './pod-ranges.ts';

/** Keeps the addresses of Services from pods: one that has such an address is not reached, nor is the Service from it. */
export class ServiceRanges {
  readonly #objects = new ObjectsOf('ServiceCIDR');
  #ranges: readonly Cidr[] = [];
  #isComplete = false;

  /** Takes an event of any kind in. Returns whether the Service ranges may be others than before. */
  apply(event: ObjectEvent): boolean {
    if (this.#objects.apply(event) === undefined) return false;
    this.#ranges = [...this.#objects.values()]
      .flatMap(({ spec }) => spec?.cidrs ?? [])
      .flatMap((text) => tryParseCidr(text) ?? []);
    return true;
  }

  /** What there was at the start is told, or does not matter. */
  complete(): void {
    this.#isComplete = true;
  }

  overlap(range: Cidr): boolean {
    return this.#overlapping(range) !== undefined;
  }

  /** The same, but for ranges that overlap those of Services: no new pod gets an address of them, nor any before those are known. */
  without(own: OwnRanges): OwnRanges {
    if (!this.#isComplete && own.sets.length > 0) return { ...own, sets: [], lacking: NOT_READ };
    if (this.#ranges.length === 0) return own;
    const refused: string[] = [];
    const usable = (range: Cidr) => {
      const other = this.#overlapping(range);
      if (other) refused.push(whyNot(range, other));
      return !other;
    };
    const sets = own.sets.map((set) => set.filter(usable));
    // One family alone would make a pod that is taken for one of a cluster of one family.
    if (sets.every((set) => set.length > 0)) return { ...own, sets };
    return { ...own, sets: [], lacking: [own.lacking, ...refused].filter(Boolean).join('; ') };
  }

  #overlapping(range: Cidr): Cidr | undefined {
    return this.#ranges.find((services) => cidrsOverlap(services, range));
  }
}

const NOT_READ = 'the Service ranges of the cluster are not read yet';

function whyNot(range: Cidr, services: Cidr): string {
  return `the range ${formatCidr(range)} of this node’s pods overlaps the Service range ${formatCidr(services)}: ${OTHER_RANGE}`;
}

/** What to do. */
export const OTHER_RANGE =
  'give pods another one, by the pools, --cni-pod-cidrs, or the podCIDRs of the Node (--cluster-cidr of kube-controller-manager)';
