import { readU32 } from '../../core/index.ts';
import { type Expression, hostOrder32 } from '../../netlink/nftables/index.ts';
import type { Choose } from '../choices.ts';
import { KnownBytes, type Packet } from '../packet/index.ts';
import type { Registers } from './registers.ts';

/** JHASH_INITVAL, <linux/jhash.h>. */
const INITIAL = 0xdeadbeef;
const BLOCK = 12;
/** What is loaded from the header with the ports, of which each connection has another. */
const OF_CONNECTION = 'transport header';

/**
 * What a jhash expression loads (nft_jhash_eval, net/netfilter/nft_hash.c): the same for the same key. Chance is only what differs from
 * connection to connection, and with a seed that the kernel took for itself nobody can tell.
 *
 * @param most so many values at most are walked one by one
 */
export function hashOf(
  { from, length, modulus, seed, offset = 0 }: Extract<Expression, { kind: 'jhash' }>,
  registers: Registers,
  { flow }: Packet,
  choose: Choose,
  most: number,
): KnownBytes {
  const key = registers.read(from, length);
  // In the walks of later packets the client's port is one of many.
  const isAnyPort = flow !== undefined && registers.isOf(OF_CONNECTION, from, length);
  if (key.isKnown && seed !== undefined && !isAnyPort)
    return KnownBytes.of(hostOrder32(scaled(jhash(key.bytes, seed), modulus) + offset));
  if (modulus > most) return KnownBytes.unknown(4);
  const differs = isAnyPort || (!key.isKnown && registers.unknownPart(from, length).startsWith(OF_CONNECTION));
  return KnownBytes.of(hostOrder32(offset + choose(differs ? 'chance' : 'unknown', `jhash mod ${modulus}`, modulus)));
}

/** reciprocal_scale, <linux/math.h>. */
function scaled(hash: number, modulus: number): number {
  return Number((BigInt(hash) * BigInt(modulus)) >> 32n);
}

/** jhash, <linux/jhash.h>, on a machine in little-endian order. @returns 32 bits */
function jhash(key: Uint8Array, seed: number): number {
  const padded = new Uint8Array(Math.ceil(key.length / BLOCK) * BLOCK);
  padded.set(key);
  const start = (INITIAL + key.length + seed) | 0;
  let [a, b, c] = [start, start, start];
  for (let at = 0; at < padded.length; at += BLOCK) {
    a = (a + readU32(padded, at)) | 0;
    b = (b + readU32(padded, at + 4)) | 0;
    c = (c + readU32(padded, at + 8)) | 0;
    [a, b, c] = at + BLOCK < padded.length ? mix(a, b, c) : final(a, b, c);
  }
  return c >>> 0;
}

type Three = [number, number, number];

function mix(...[first, second, third]: Three): Three {
  let [a, b, c] = [first, second, third];
  for (const [x, y, z] of [
    [4, 6, 8],
    [16, 19, 4],
  ] as const) {
    a = ((a - c) ^ rotate(c, x)) | 0;
    c = (c + b) | 0;
    b = ((b - a) ^ rotate(a, y)) | 0;
    a = (a + c) | 0;
    c = ((c - b) ^ rotate(b, z)) | 0;
    b = (b + a) | 0;
  }
  return [a, b, c];
}

function final(...[first, second, third]: Three): Three {
  let [a, b, c] = [first, second, third];
  c = ((c ^ b) - rotate(b, 14)) | 0;
  a = ((a ^ c) - rotate(c, 11)) | 0;
  b = ((b ^ a) - rotate(a, 25)) | 0;
  c = ((c ^ b) - rotate(b, 16)) | 0;
  a = ((a ^ c) - rotate(c, 4)) | 0;
  b = ((b ^ a) - rotate(a, 14)) | 0;
  c = ((c ^ b) - rotate(b, 24)) | 0;
  return [a, b, c];
}

function rotate(word: number, bits: number): number {
  return (word << bits) | (word >>> (32 - bits));
}
