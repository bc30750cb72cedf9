import { hash } from 'node:crypto';
import { NodeplaneError } from '../../../core/index.ts';

/**
 * Traffic from outside to a destination of policy Local has a virtual server of its own, which it is led to by a firewall
 * mark. These marks are ours: virtual servers with one of them are too.
 *
 * The bits below avoid those others test on packets that pass here: 0x4000 and 0x8000 (kube-proxy, kubelet), 0x2000 (CNI port
 * mappings), 0x0f00 (Cilium), 0x80 (AWS), and values others compare bits 16 to 23 with (Tailscale: 4 and 8).
 */
const PREFIXES = [0x6e70_0000, 0x1180_0000] as const;
const MASK = 0xfff0_ff80;
/** Bits that number the marks: 16 to 19, and 0 to 6. */
const COUNT = 2 ** 11;

/** Whether a mark is one of ours. */
export function isOwnMark(mark: number): boolean {
  return PREFIXES.some((prefix) => (mark & MASK) >>> 0 === prefix);
}

/** Gives out marks: a Service port gets the same one at every start, but for a few that compete for it. */
export class Marks {
  readonly #byOwner = new Map<string, number>();
  readonly #owners = new Map<number, string>();
  readonly #reserved: number;
  readonly #prefix: number;

  /** @param reserved the bit that asks for masquerading, which no mark may have */
  constructor(reserved: number) {
    this.#reserved = reserved;
    this.#prefix = PREFIXES.find((prefix) => (prefix & reserved) === 0)!;
  }

  /** The mark of a Service port. Throws ERR_DATAPLANE when all are given out. */
  take(owner: string): number {
    const present = this.#byOwner.get(owner);
    if (present !== undefined) return present;
    const start = hash('sha256', owner, 'buffer').readUInt16LE(0);
    for (let step = 0; step < COUNT; step++) {
      const index = (start + step) % COUNT;
      const mark = this.#prefix + ((index >> 7) << 16) + (index & 0x7f);
      if ((mark & this.#reserved) !== 0 || this.#owners.has(mark)) continue;
      this.#byOwner.set(owner, mark);
      this.#owners.set(mark, owner);
      return mark;
    }
    const message = `Cannot serve "${owner}": all ${COUNT} marks for Service ports with externalTrafficPolicy Local are in use`;
    throw new NodeplaneError('ERR_DATAPLANE', message, { facts: { owner } });
  }

  release(owner: string): void {
    const mark = this.#byOwner.get(owner);
    if (mark === undefined) return;
    this.#byOwner.delete(owner);
    this.#owners.delete(mark);
  }
}
