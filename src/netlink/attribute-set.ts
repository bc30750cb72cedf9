import { type Attribute, AttributeWriter, readAttributes } from './attribute.ts';
import { decodeError } from './decode-error.ts';
import { type IntegerType, integerSize, readInteger } from './integer.ts';
import type { Struct, StructFields, StructValues } from './struct.ts';
import { NLA_TYPE_MASK } from './uapi/netlink.ts';

/** What the value of an attribute is: an integer, text with or without a final NUL, bytes, a nest of another set. */
// biome-ignore lint/suspicious/noExplicitAny: a nest of any declaration; ValueOf recovers the exact one.
export type AttributeType = IntegerType | 'string' | 'unterminated' | 'bytes' | AttributeSet<any>;

/** Attributes by the kernel's name: number, type. NLA_F_NESTED is part of the number where the kernel insists on it. */
export type AttributeDeclarations = Readonly<Record<string, readonly [number: number, type: AttributeType]>>;

type PlainValue<T> = T extends IntegerType ? number : T extends 'string' | 'unterminated' ? string : Uint8Array;

/** Values to encode; undefined ones are left out, the others are written in the order given. */
export type AttributeValues<D extends AttributeDeclarations> = {
  readonly [K in keyof D]?:
    | (D[K][1] extends AttributeSet<infer Nested> ? AttributeValues<Nested> : PlainValue<D[K][1]>)
    | undefined;
};

/** Decoded values; attributes the set does not declare are in `unknown`. Byte values are views into the message. */
export type DecodedAttributes<D extends AttributeDeclarations> = {
  readonly [K in keyof D]?: D[K][1] extends AttributeSet<infer Nested>
    ? DecodedAttributes<Nested>
    : PlainValue<D[K][1]>;
} & { readonly unknown: readonly Attribute[] };

/** A netlink attribute space declared once as a table and used in both directions. */
export interface AttributeSet<D extends AttributeDeclarations = AttributeDeclarations> {
  readonly name: string;
  readonly declarations: D;
  /** Throws ERR_ENCODE for a value that does not fit. */
  encode(writer: AttributeWriter, values: AttributeValues<D>): void;
  /**
   * Reads all attributes from `offset` to the end; of an attribute given twice the last counts, as in the kernel.
   * Throws ERR_NETLINK_DECODE naming the attribute whose length is wrong.
   */
  decode(bytes: Uint8Array, offset?: number): DecodedAttributes<D>;
}

/** Declares the attributes of one attribute space. `name` is used in errors. */
export function attributeSet<const D extends AttributeDeclarations>(name: string, declarations: D): AttributeSet<D> {
  const byNumber = new Map<number, { key: string; type: AttributeType }>();
  for (const [key, [number, type]] of Object.entries(declarations)) byNumber.set(number & NLA_TYPE_MASK, { key, type });
  return {
    name,
    declarations,
    encode(writer, values) {
      for (const key in values) {
        const value = values[key];
        if (value !== undefined) appendAttribute(writer, key, declarations[key]!, value);
      }
    },
    decode(bytes, offset = 0) {
      const decoded: Record<string, unknown> = {};
      const unknown: Attribute[] = [];
      for (const attribute of readAttributes(bytes, offset, name)) {
        const declared = byNumber.get(attribute.type);
        if (declared) decoded[declared.key] = decodeValue(declared.key, declared.type, attribute.value);
        else unknown.push(attribute);
      }
      decoded.unknown = unknown;
      return decoded as unknown as DecodedAttributes<D>;
    },
  };
}

/** The bytes of a message body, or of an attribute shaped like one: a fixed struct followed by attributes. */
export function encodeBody<F extends StructFields, D extends AttributeDeclarations>(
  header: Struct<F>,
  fields: Partial<StructValues<F>>,
  set: AttributeSet<D>,
  values: AttributeValues<D>,
): Uint8Array {
  const writer = new AttributeWriter();
  header.encode(writer.bytes, fields);
  set.encode(writer, values);
  return writer.bytes.written();
}

/** The bytes of a nest, for attributes whose content depends on another one (IFLA_INFO_DATA on IFLA_INFO_KIND). */
export function encodeNest<D extends AttributeDeclarations>(
  set: AttributeSet<D>,
  values: AttributeValues<D>,
): Uint8Array {
  const writer = new AttributeWriter();
  set.encode(writer, values);
  return writer.bytes.written();
}

function appendAttribute(
  writer: AttributeWriter,
  name: string,
  [number, type]: readonly [number, AttributeType],
  value: unknown,
): void {
  if (type === 'string') writer.string(number, value as string, name);
  else if (type === 'unterminated') writer.blob(number, Buffer.from(value as string), name);
  else if (type === 'bytes') writer.blob(number, value as Uint8Array, name);
  else if (typeof type === 'string') writer.integer(number, type, value as number, name);
  else {
    const start = writer.nest(number);
    type.encode(writer, value as AttributeValues<AttributeDeclarations>);
    writer.end(start, name);
  }
}

function decodeValue(name: string, type: AttributeType, value: Uint8Array): unknown {
  if (type === 'bytes') return value;
  if (type === 'string' || type === 'unterminated') {
    const nul = value.indexOf(0);
    return Buffer.from(value.buffer, value.byteOffset, nul < 0 ? value.length : nul).toString('utf8');
  }
  if (typeof type !== 'string') return type.decode(value);
  const size = integerSize(type);
  if (value.length !== size) throw decodeError(name, `it has ${value.length} bytes, expected ${size}`);
  return readInteger(type, value, 0);
}
