import type { ByteWriter } from '../core/index.ts';
import { decodeError } from './decode-error.ts';
import { appendInteger, type IntegerType, readInteger } from './integer.ts';

/** The fields of a C struct in ascending order: name, type, byte offset. */
export type StructFields = Readonly<Record<string, readonly [type: IntegerType, offset: number]>>;

/** The decoded form of a struct. */
export type StructValues<F extends StructFields> = { readonly [K in keyof F]: number };

/** A C struct declared once as a table and used in both directions. Bytes no field names (padding) are written as zero. */
export interface Struct<F extends StructFields = StructFields> {
  readonly name: string;
  readonly size: number;
  readonly fields: F;
  /** Appends the struct; fields left out are zero. Throws ERR_ENCODE for a value that does not fit its field. */
  encode(writer: ByteWriter, values: Partial<StructValues<F>>): void;
  /** Reads the struct at `offset`; what follows it is not looked at. Throws ERR_NETLINK_DECODE when cut short. */
  decode(bytes: Uint8Array, offset?: number): StructValues<F>;
}

/**
 * Declares a C struct.
 *
 * @param name the C name, used in errors
 * @param size sizeof, trailing padding included
 */
export function struct<const F extends StructFields>(name: string, size: number, fields: F): Struct<F> {
  const table = Object.entries(fields).map(([field, [type, offset]]) => ({ field, type, offset }));
  return {
    name,
    size,
    fields,
    encode(writer, values) {
      const start = writer.length;
      for (const { field, type, offset } of table) {
        writer.zeros(start + offset - writer.length);
        appendInteger(type, writer, values[field] ?? 0, `${name}.${field}`);
      }
      writer.zeros(start + size - writer.length);
    },
    decode(bytes, offset = 0) {
      const available = Math.max(0, bytes.length - offset);
      if (available < size) throw decodeError(`struct ${name}`, `it has ${size} bytes, found ${available}`);
      const values: Record<string, number> = {};
      for (const { field, type, offset: within } of table) values[field] = readInteger(type, bytes, offset + within);
      return values as StructValues<F>;
    },
  };
}
