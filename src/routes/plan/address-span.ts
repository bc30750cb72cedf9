import { addressBits, type Cidr, formatCidr, formatIp, type IpAddress, networkOf } from '../../core/index.ts';
import { lastOf } from '../../nft/index.ts';
import type { Span } from './claims.ts';

/** The addresses of a block, called by `kind` and the block: `pod CIDR 10.244.3.0/24`. Host bits do not matter. */
export function spanOf(block: Cidr, kind: string): Span {
  const { address, prefixLength } = block;
  const isOne = prefixLength === addressBits(address.family);
  const first = networkOf(address, prefixLength).bytes;
  return { first, last: lastOf(block), what: `${kind} ${isOne ? formatIp(address) : formatCidr(block)}` };
}

/** One address as a block. */
export function blockOf(address: IpAddress): Cidr {
  return { address, prefixLength: addressBits(address.family) };
}
