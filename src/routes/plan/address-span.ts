import {
  addressBits,
  type Cidr,
  formatCidr,
  formatIp,
  type IpAddress,
  networkOf,
  sameBytes,
} from '../../core/index.ts';
import { lastOf } from '../../nft/index.ts';
import type { Span } from './claims.ts';

/** The addresses of a block, called by `kind` and the block: `pod CIDR 10.244.3.0/24`. Host bits do not matter. */
export function spanOf(block: Cidr, kind: string): Span {
  return new BlockSpan(block, kind);
}

/** One address as a block. */
export function blockOf(address: IpAddress): Cidr {
  return { address, prefixLength: addressBits(address.family) };
}

/** There are thousands: bytes are shared with the block where they are the same, and words are made when they are asked for. */
class BlockSpan implements Span {
  readonly first: Uint8Array;
  readonly last: Uint8Array;
  readonly #block: Cidr;
  readonly #kind: string;

  constructor(block: Cidr, kind: string) {
    const { bytes } = block.address;
    const network = networkOf(block.address, block.prefixLength).bytes;
    this.first = sameBytes(network, bytes) ? bytes : network;
    this.last = isOne(block) ? this.first : lastOf(block);
    this.#block = block;
    this.#kind = kind;
  }

  get what(): string {
    return `${this.#kind} ${isOne(this.#block) ? formatIp(this.#block.address) : formatCidr(this.#block)}`;
  }
}

function isOne({ address, prefixLength }: Cidr): boolean {
  return prefixLength === addressBits(address.family);
}
