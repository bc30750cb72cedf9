import { type IpAddress, parseIp, prefixMask } from '../../core/index.ts';
import type { KnownBytes } from '../packet/index.ts';

/** True, false, or nobody can tell. */
export type Truth = boolean | undefined;

/** The opposite; as it is unless `inverted`. What nobody can tell stays so. */
export function negate(truth: Truth, inverted = true): Truth {
  return truth === undefined ? undefined : truth !== inverted;
}

/** One that is false decides. */
export function all(truths: readonly Truth[]): Truth {
  if (truths.includes(false)) return false;
  return truths.includes(undefined) ? undefined : true;
}

/** One that is true decides. */
export function any(truths: readonly Truth[]): Truth {
  return negate(all(truths.map((truth) => negate(truth))));
}

/** @param network `ADDRESS`, `ADDRESS/LENGTH` or `ADDRESS/MASK`, whose bits need not be in a row */
export function inNetwork(address: KnownBytes, network: string): Truth {
  const [base, mask] = network.split('/');
  const wanted = parseIp(base!);
  if (wanted.bytes.length !== address.length) return undefined;
  const bits = mask === undefined ? undefined : maskOf(mask, wanted);
  const none = new Uint8Array(address.length);
  const looked = bits ? address.masked(bits, none) : address;
  return looked.equals(bits ? wanted.bytes.map((byte, index) => byte & bits[index]!) : wanted.bytes);
}

function maskOf(mask: string, { family }: IpAddress): Uint8Array {
  return /^\d+$/.test(mask) ? prefixMask(family, Number(mask)) : parseIp(mask).bytes;
}

/** @param range `FIRST-LAST`, both included */
export function inAddressRange(address: KnownBytes, range: string): Truth {
  const [first, last = first] = range.split('-').map((text) => parseIp(text).bytes);
  return within(address, first!, last!);
}

/** @param range `80` or `80:90`, as a port in network byte order is compared */
export function inPortRange(port: KnownBytes, range: string): Truth {
  const [first, last = first] = range.split(':').map(Number);
  if (first === undefined || !Number.isInteger(first) || !Number.isInteger(last)) return undefined;
  return within(port, portBytes(first), portBytes(last!));
}

function within(value: KnownBytes, first: Uint8Array, last: Uint8Array): Truth {
  const [low, high] = [value.compare(first), value.compare(last)];
  return all([low === undefined ? undefined : low >= 0, high === undefined ? undefined : high <= 0]);
}

/** A port in network byte order, as packets have it. */
export function portBytes(port: number): Uint8Array {
  return Uint8Array.of(port >> 8, port & 0xff);
}

/** A mark in host byte order, as packets have it. */
export function markBytes(mark: number): Uint8Array {
  return new Uint8Array(Uint32Array.of(mark).buffer);
}

/** `0x4000/0xff00`, or without the mask: all bits. Undefined for anything else. */
export function parseMark(text: string | undefined): { readonly value: number; readonly mask: number } | undefined {
  const [value, mask = 0xffff_ffff] = (text ?? '').split('/').map(Number);
  return text && Number.isInteger(value) && Number.isInteger(mask) ? { value: value!, mask } : undefined;
}

/** Whether a mark is as a rule wants it, `0x4000/0xff00`; undefined also for a text that is none. */
export function hasMark(mark: KnownBytes, text: string | undefined): Truth {
  const wanted = parseMark(text);
  if (!wanted) return undefined;
  return mark.masked(markBytes(wanted.mask), new Uint8Array(4)).equals(markBytes(wanted.value));
}

/** `eth0`, `eth+`; an interface that is not there has an empty name. */
export function isInterface(name: string, pattern: string): boolean {
  return pattern.endsWith('+') ? name.startsWith(pattern.slice(0, -1)) : name === pattern;
}
