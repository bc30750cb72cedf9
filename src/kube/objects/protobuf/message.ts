// Reads messages of Protocol Buffers (protobuf.dev/programming-guides/encoding) into what JSON.parse makes of the same object,
// with the fields that are described and no others: what nobody reads is passed over by its length.

/** The bytes are not such a message. */
export class WireError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'WireError';
  }
}

/** How the value of a field is encoded: the low three bits of its tag. */
const VARINT = 0;
const FIXED64 = 1;
const BYTES = 2;
const FIXED32 = 5;

type FieldType =
  | 'text'
  | 'flag'
  /** Of 32 bits, not negative. */
  | 'integer'
  /** As they are: a part of what is read, not a copy. */
  | 'bytes'
  | 'message'
  /** `map<string, string>` */
  | 'map'
  /** meta/v1 Time: becomes RFC 3339 in UTC. */
  | 'time';

interface FieldOptions {
  /** There may be more than one: a list. @default false */
  readonly repeated?: boolean;
  /**
   * Whether an empty text and a zero are values. A field of Go that is no pointer is always written, and what is empty left out of
   * JSON: those of pointers keep what is empty. @default false
   */
  readonly keepsEmpty?: boolean;
  /** Of a message: its fields. */
  readonly message?: Message;
  /** Of a map: the keys that are kept. */
  readonly known?: ReadonlySet<string>;
}

/** One field of a message. */
export class Field {
  /** As JSON names it. */
  readonly name: string;
  readonly type: FieldType;
  readonly repeated: boolean;
  readonly keepsEmpty: boolean;
  readonly message: Message;
  readonly known: ReadonlySet<string>;

  constructor(name: string, type: FieldType, options: FieldOptions = {}) {
    this.name = name;
    this.type = type;
    this.repeated = options.repeated ?? false;
    this.keepsEmpty = options.keepsEmpty ?? false;
    this.message = options.message ?? [];
    this.known = options.known ?? new Set();
  }
}

/** The fields of a message that are read, by their number. */
export type Message = readonly (Field | undefined)[];

/** @param fields by their number in the .proto file */
export function messageOf(fields: Readonly<Record<number, Field>>): Message {
  const numbers = Object.keys(fields).map(Number);
  return Array.from({ length: Math.max(...numbers) + 1 }, (_, number) => fields[number]);
}

/**
 * Reads a message.
 *
 * @returns a mapping by the fields' names
 * @throws WireError for bytes that are no such message
 */
export function readMessage(message: Message, bytes: Buffer): Record<string, unknown> {
  return new WireReader(bytes).message(message, bytes.length);
}

/** Goes through the bytes of a message. */
class WireReader {
  readonly #bytes: Buffer;
  #at = 0;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
  }

  /** The message that ends at `end`. Descends as deep as the description does, whatever the bytes say. */
  message(fields: Message, end: number): Record<string, unknown> {
    const values: Record<string, unknown> = {};
    while (this.#at < end) {
      const tag = this.#varint();
      const field = fields[tag >>> 3];
      if (field === undefined) this.#skip(tag & 7);
      else this.#field(field, tag & 7, values);
      if (this.#at > end) throw new WireError('a field is longer than what it is in');
    }
    return values;
  }

  #field(field: Field, wire: number, values: Record<string, unknown>): void {
    const { name, type } = field;
    if (wire !== (type === 'flag' || type === 'integer' ? VARINT : BYTES)) {
      throw new WireError(`field "${name}" is not encoded as its type is`);
    }
    if (type === 'map') {
      values[name] ??= {};
      this.#entry(values[name] as Record<string, string>, field.known);
      return;
    }
    const value = this.#value(field);
    if (field.repeated) {
      const list = values[name] as unknown[] | undefined;
      // A list that is made of its only element has no room to spare, and most have one.
      if (list === undefined) values[name] = [value];
      else list.push(value);
    } else if (value !== undefined && (field.keepsEmpty || (value !== '' && value !== 0))) {
      values[name] = value;
    }
  }

  #value(field: Field): unknown {
    switch (field.type) {
      case 'text':
        return this.#text();
      case 'message':
        return this.message(field.message, this.#end());
      case 'flag':
        return this.#varint() !== 0;
      case 'time':
        return timeOf(this.message(TIME, this.#end()));
      case 'bytes': {
        const end = this.#end();
        return this.#bytes.subarray(this.#moveTo(end), end);
      }
      default:
        return this.#varint();
    }
  }

  /** A map is a repeated message of a key (1) and a value (2). The value is not made into text unless it is kept. */
  #entry(kept: Record<string, string>, known: ReadonlySet<string>): void {
    const end = this.#end();
    let key = '';
    let value: Buffer | undefined;
    while (this.#at < end) {
      const tag = this.#varint();
      if (tag === ((1 << 3) | BYTES)) {
        key = this.#text();
      } else if (tag === ((2 << 3) | BYTES)) {
        const to = this.#end();
        value = this.#bytes.subarray(this.#moveTo(to), to);
      } else {
        this.#skip(tag & 7);
      }
      if (this.#at > end) throw new WireError('a field is longer than what it is in');
    }
    if (known.has(key)) kept[key] = value?.toString('utf8') ?? '';
  }

  #text(): string {
    const end = this.#end();
    return this.#bytes.toString('utf8', this.#moveTo(end), end);
  }

  /** Where the value with the length that stands here ends. */
  #end(): number {
    const length = this.#varint();
    const end = this.#at + length;
    if (end > this.#bytes.length) throw new WireError('a field is longer than what it is in');
    return end;
  }

  /** Goes on from `at`; returns where it was. */
  #moveTo(at: number): number {
    const from = this.#at;
    this.#at = at;
    return from;
  }

  #skip(wire: number): void {
    if (wire === BYTES) this.#at = this.#end();
    else if (wire === VARINT) this.#varint();
    else if (wire === FIXED64) this.#at += 8;
    else if (wire === FIXED32) this.#at += 4;
    else throw new WireError(`no field is encoded as ${wire}`);
  }

  /** Seven bits a byte, the lowest first. Exact up to 2^53; what is negative has ten bytes, and is of no use here. */
  #varint(): number {
    const bytes = this.#bytes;
    let byte = bytes[this.#at++];
    if (byte !== undefined && byte < 0x80) return byte;
    let value = 0;
    for (let unit = 1; byte !== undefined && unit < 2 ** 70; unit *= 0x80) {
      value += (byte & 0x7f) * unit;
      if (byte < 0x80) return value;
      byte = bytes[this.#at++];
    }
    throw new WireError('a number has no end');
  }
}

const TIME: Message = messageOf({ 1: new Field('seconds', 'integer') });

/** As the API server writes it in JSON: to a second. Year 1, which is no time in Go, is an empty message. */
function timeOf({ seconds }: Record<string, unknown>): string | undefined {
  const date = new Date(Number(seconds) * 1000);
  if (Number.isNaN(date.getTime())) return undefined;
  return `${date.toISOString().slice(0, 19)}Z`;
}
