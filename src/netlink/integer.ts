import { type ByteWriter, NodeplaneError, readBe16, readBe32, readU16, readU32 } from '../core/index.ts';
import { decodeError } from './decode-error.ts';

/** Integer types of wire fields: host byte order unless the name says `be`. */
export type IntegerType = 'u8' | 'u16' | 'u32' | 's32' | 'be16' | 'be32';

interface IntegerCodec {
  readonly size: number;
  readonly min: number;
  readonly max: number;
  read(bytes: Uint8Array, at: number): number;
  append(writer: ByteWriter, value: number): void;
}

const CODECS: Readonly<Record<IntegerType, IntegerCodec>> = {
  u8: { size: 1, min: 0, max: 0xff, read: (b, at) => b[at]!, append: (w, v) => w.u8(v) },
  u16: { size: 2, min: 0, max: 0xffff, read: readU16, append: (w, v) => w.u16(v) },
  u32: { size: 4, min: 0, max: 0xffff_ffff, read: readU32, append: (w, v) => w.u32(v) },
  s32: {
    size: 4,
    min: -0x8000_0000,
    max: 0x7fff_ffff,
    read: (b, at) => readU32(b, at) | 0,
    append: (w, v) => w.u32(v),
  },
  be16: { size: 2, min: 0, max: 0xffff, read: readBe16, append: (w, v) => w.be16(v) },
  be32: { size: 4, min: 0, max: 0xffff_ffff, read: readBe32, append: (w, v) => w.be32(v) },
};

/** Size in bytes. */
export function integerSize(type: IntegerType): number {
  return CODECS[type].size;
}

/** Reads an integer; the caller has checked the bounds. */
export function readInteger(type: IntegerType, bytes: Uint8Array, at: number): number {
  return CODECS[type].read(bytes, at);
}

/** Appends an integer. Throws ERR_ENCODE, naming `field`, when `value` is no integer of that width. */
export function appendInteger(type: IntegerType, writer: ByteWriter, value: number, field: string): void {
  const codec = CODECS[type];
  if (!Number.isInteger(value) || value < codec.min || value > codec.max) {
    throw new NodeplaneError(
      'ERR_ENCODE',
      `Cannot write "${value}" as ${field}: need an integer from ${codec.min} to ${codec.max}`,
      { facts: { field, value } },
    );
  }
  codec.append(writer, value);
}

/**
 * Reads the value of an attribute of 64 bits in host order.
 *
 * @param field its name
 * @throws ERR_NETLINK_DECODE when it is missing, or has not exactly eight bytes
 */
export function readU64(value: Uint8Array | undefined, field: string): bigint {
  return eightBytes(value, field).getBigUint64(0, true);
}

/** The same in network order. */
export function readBe64(value: Uint8Array | undefined, field: string): bigint {
  return eightBytes(value, field).getBigUint64(0);
}

/** What an attribute of one byte says for a flag; undefined stays undefined. */
export function flagValue(flag: boolean | undefined): number | undefined {
  return flag === undefined ? undefined : Number(flag);
}

/** 16 bits in the other byte order, as htons makes them. */
export function swap16(value: number): number {
  return ((value & 0xff) << 8) | (value >>> 8);
}

function eightBytes(value: Uint8Array | undefined, field: string): DataView {
  if (value?.length !== 8) throw decodeError(field, `it has ${value?.length ?? 0} bytes, expected 8`);
  return new DataView(value.buffer, value.byteOffset, 8);
}
