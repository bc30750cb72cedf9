import { type Cidr, formatCidr, formatIp, formatMac, type IpAddress } from '../../core/index.ts';
import { formatKey } from '../../netlink/wireguard/index.ts';
import type { Claimant, Span } from './claims.ts';

const WIREGUARD_KEY_LENGTH = 32;

/** The addresses of a block, called by `kind` and the block: `pod CIDR 10.244.3.0/24`. Host bits do not matter. */
export function spanOf({ address, prefixLength }: Cidr, kind: string, owner?: Claimant): Span {
  return new NamedSpan(address.bytes, prefixLength, kind, owner);
}

/** The one value an address is. */
export function addressSpan({ bytes }: IpAddress, kind: string, owner?: Claimant): Span {
  return new NamedSpan(bytes, 8 * bytes.length, kind, owner);
}

/** The one value a MAC address is. */
export function macSpan(mac: Uint8Array, kind: string, owner?: Claimant): Span {
  return new NamedSpan(mac, 8 * mac.length, kind, owner);
}

/** The one value a WireGuard key is: 32 bytes. */
export function keySpan(key: Uint8Array, kind: string, owner?: Claimant): Span {
  return new NamedSpan(key, 8 * key.length, kind, owner);
}

/** There are thousands: bytes are shared with what they are of, and words are made when they are asked for. */
class NamedSpan implements Span {
  readonly bytes: Uint8Array;
  readonly prefixLength: number;
  readonly owner: Claimant | undefined;
  readonly #kind: string;

  constructor(bytes: Uint8Array, prefixLength: number, kind: string, owner: Claimant | undefined) {
    this.bytes = bytes;
    this.prefixLength = prefixLength;
    this.owner = owner;
    this.#kind = kind;
  }

  get what(): string {
    return `${this.#kind} ${this.#valueText()}`;
  }

  #valueText(): string {
    const { bytes, prefixLength } = this;
    if (bytes.length === 6) return formatMac(bytes);
    if (bytes.length === WIREGUARD_KEY_LENGTH) return formatKey(bytes);
    const address: IpAddress = { family: bytes.length === 4 ? 'IPv4' : 'IPv6', bytes };
    return prefixLength === 8 * bytes.length ? formatIp(address) : formatCidr({ address, prefixLength });
  }
}
