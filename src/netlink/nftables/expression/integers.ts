import { NodeplaneError } from '../../../core/index.ts';
import { decodeError } from '../../decode-error.ts';
import { readBe64 } from '../../integer.ts';
import { NFT_REG_1, NFT_REG32_00 } from '../../uapi/nf-tables.ts';

/** 64 bits in network byte order. Throws ERR_ENCODE for what is no integer from 0 to 2^64 - 1. */
export function be64(value: number | bigint, field: string): Uint8Array {
  const bytes = Buffer.alloc(8);
  try {
    bytes.writeBigUInt64BE(BigInt(value));
  } catch {
    throw new NodeplaneError('ERR_ENCODE', `Cannot write "${value}" as ${field}: need an integer from 0 to 2^64 - 1`, {
      facts: { field, value: String(value) },
    });
  }
  return bytes;
}

/** As `readBe64`, for handles and times, which JavaScript's numbers hold; undefined stays undefined. */
export function readOptional64(bytes: Uint8Array | undefined, field: string): number | undefined {
  if (bytes === undefined) return undefined;
  const value = readBe64(bytes, field);
  if (value > BigInt(Number.MAX_SAFE_INTEGER)) throw decodeError(field, `${value} is too large`);
  return Number(value);
}

/**
 * The kernel's number for a 4-byte register. Where a 16-byte register begins, its older number is used: the kernel reports
 * it so, and `nft` before 1.0 knows no other.
 */
export function registerNumber(register: number): number {
  if (!Number.isInteger(register) || register < 0 || register > 15) {
    throw new NodeplaneError('ERR_ENCODE', `Cannot write "${register}" as a register: need an integer from 0 to 15`);
  }
  return register % 4 === 0 ? NFT_REG_1 + register / 4 : NFT_REG32_00 + register;
}

/** As `registerNumber`; undefined stays undefined. */
export function optionalRegister(register: number | undefined): number | undefined {
  return register === undefined ? undefined : registerNumber(register);
}

/** The 4-byte register behind the kernel's number. */
export function readRegister(number: number, field: string): number {
  if (number >= NFT_REG32_00 && number < NFT_REG32_00 + 16) return number - NFT_REG32_00;
  if (number >= NFT_REG_1 && number < NFT_REG_1 + 4) return (number - NFT_REG_1) * 4;
  throw decodeError(field, `${number} is no register`);
}

/** The value of an attribute that must be there. */
export function need<A extends object, K extends keyof A & string>(attributes: A, name: K): NonNullable<A[K]> {
  const value = attributes[name];
  if (value === undefined || value === null) throw decodeError(name, 'it is missing');
  return value;
}
