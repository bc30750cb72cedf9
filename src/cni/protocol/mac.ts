import { type Cidr, formatIp, type IpAddress } from '../../core/index.ts';
import type { AttachmentKey } from './attachment-key.ts';
import { fingerprint } from './fingerprint.ts';

/** The MAC of a pod's interface: the one asked for, else one that follows from its first address, IPv4 before IPv6. */
export function podMac(
  requested: Uint8Array | undefined,
  { alias }: Pick<AttachmentKey, 'alias'>,
  ips: readonly { readonly address: Cidr }[],
): Uint8Array {
  if (requested) return requested;
  const main = ips.find(({ address }) => address.address.family === 'IPv4') ?? ips[0];
  return main ? macOfAddress(main.address.address) : macOfText(`${alias}/pod`);
}

/**
 * The MAC of the interface that carries an address. It follows from the address, so that a neighbour entry which outlives
 * the pod is right for the next pod with this address too. IPv4 is used whole, with the prefix other Kubernetes plugins use
 * for the same purpose; IPv6 is hashed.
 */
export function macOfAddress(ip: IpAddress): Uint8Array {
  return ip.family === 'IPv4' ? Uint8Array.of(0x0a, 0x58, ...ip.bytes) : macOfText(formatIp(ip));
}

/** A locally administered unicast MAC that follows from a text. */
export function macOfText(text: string): Uint8Array {
  const digits = fingerprint(text).toString(16).padStart(16, '0').slice(-10);
  return Uint8Array.of(0x0e, ...Buffer.from(digits, 'hex'));
}

/** Reads six bytes in hexadecimal, joined by colons or hyphens; undefined for anything else. */
export function parseMac(text: string): Uint8Array | undefined {
  return /^[0-9a-f]{2}([:-][0-9a-f]{2}){5}$/i.test(text) ? Buffer.from(text.replace(/[:-]/g, ''), 'hex') : undefined;
}
