import protobuf from 'protobufjs';
import { WRITTEN_OTHERWISE } from './json-forms.ts';
import { DEFINITIONS } from './messages/index.ts';

type Json = Readonly<Record<string, unknown>>;

/** Writes one field; `path` names it in errors. */
type WriteField = (writer: protobuf.Writer, value: unknown, path: string) => void;

interface FieldPlan {
  readonly name: string;
  readonly write: WriteField;
  /** Writes what Go writes when there is nothing to say; undefined: nothing. */
  readonly writeEmpty: ((writer: protobuf.Writer) => void) | undefined;
}

/** What a field holds; of a map, what its values are. */
type ValueType = Pick<protobuf.FieldBase, 'resolvedType' | 'type'>;

/** The fields of a message in the order of their numbers, which is how upstream writes them. */
type MessagePlan = readonly FieldPlan[];

let root: protobuf.Root | undefined;
const plans = new Map<protobuf.Type, MessagePlan>();

/** The bytes of a message, from the form that its fields have in JSON. Throws at a field that the definition lacks. */
export function encodeMessage(typeName: string, value: object, path: string): Uint8Array {
  const writer = protobuf.Writer.create();
  writeMessage(writer, typeNamed(typeName), value as Json, path);
  return writer.finish();
}

/** For tests: what protobufjs itself reads out of a message. */
export function decodeMessage(typeName: string, bytes: Uint8Array): Json {
  const type = typeNamed(typeName);
  return type.toObject(type.decode(bytes), { longs: Number });
}

/** The definitions are read when the first is needed: most tests need none. */
function typeNamed(name: string): protobuf.Type {
  if (!root) {
    root = new protobuf.Root();
    for (const definition of DEFINITIONS) protobuf.parse(definition, root, { keepCase: true });
    root.resolveAll();
  }
  return root.lookupType(name);
}

function writeMessage(writer: protobuf.Writer, type: protobuf.Type, value: Json, path: string): void {
  let known = 0;
  for (const { name, write, writeEmpty } of planOf(type)) {
    const item = value[name];
    if (item !== undefined || Object.hasOwn(value, name)) known++;
    if (item === undefined || item === null) writeEmpty?.(writer);
    else write(writer, item, `${path}.${name}`);
  }
  if (known === Object.keys(value).length) return;
  const unknown = Object.keys(value).filter((name) => !Object.hasOwn(type.fields, name));
  throw new Error(`${path}: the fake API server's message ${type.fullName} has no field "${unknown.join('", "')}"`);
}

function planOf(type: protobuf.Type): MessagePlan {
  let plan = plans.get(type);
  if (!plan) {
    plan = type.fieldsArray.toSorted((a, b) => a.id - b.id).map(planField);
    plans.set(type, plan);
  }
  return plan;
}

function planField(field: protobuf.Field): FieldPlan {
  const { name } = field;
  const writeOne = writerOf(field);
  if (field instanceof protobuf.MapField) return { name, write: mapWriter(field, writeOne), writeEmpty: undefined };
  const tag = tagOf(field.id, field);
  if (field.repeated) {
    const write: WriteField = (writer, value, path) => {
      if (!Array.isArray(value)) throw new Error(`${path} is no list`);
      for (const [index, item] of value.entries()) writeOne(writer.uint32(tag), item, `${path}[${index}]`);
    };
    return { name, write, writeEmpty: undefined };
  }
  const write: WriteField = (writer, value, path) => writeOne(writer.uint32(tag), value, path);
  return { name, write, writeEmpty: field.required ? (writer) => writeNothing(writer.uint32(tag), field) : undefined };
}

/** In the order of the keys, as upstream writes it. */
function mapWriter(field: protobuf.MapField, writeOne: WriteField): WriteField {
  const [tag, valueTag] = [(field.id << 3) | 2, tagOf(2, field)];
  return (writer, value, path) => {
    for (const key of Object.keys(value as Json).sort()) {
      writer
        .uint32(tag)
        .fork()
        .uint32((1 << 3) | 2)
        .string(key);
      writeOne(writer.uint32(valueTag), (value as Json)[key], `${path}["${key}"]`);
      writer.ldelim();
    }
  };
}

/** Writes a value of the field's type, without its tag. */
function writerOf({ resolvedType, type: scalar }: ValueType): WriteField {
  if (resolvedType instanceof protobuf.Type) {
    const toMessage = WRITTEN_OTHERWISE[resolvedType.fullName];
    return (writer, value, path) => {
      const message = toMessage ? toMessage(value, path) : value;
      if (typeof message !== 'object' || message === null || Array.isArray(message))
        throw new Error(`${path} is no mapping`);
      writer.fork();
      writeMessage(writer, resolvedType, message as Json, path);
      writer.ldelim();
    };
  }
  const [expected, put] = SCALARS[scalar as keyof typeof SCALARS];
  return (writer, value, path) => {
    if (typeof value !== expected) throw new Error(`${path} is no ${expected}: ${JSON.stringify(value)}`);
    put(writer, value as never);
  };
}

function writeNothing(writer: protobuf.Writer, { resolvedType, type: scalar }: ValueType): void {
  if (resolvedType instanceof protobuf.Type) {
    writer.fork();
    writeMessage(writer, resolvedType, {}, '');
    writer.ldelim();
  } else if (scalar === 'string') writer.string('');
  else writer.uint32(0);
}

function tagOf(id: number, { resolvedType, type: scalar }: ValueType): number {
  const isDelimited = resolvedType !== null || scalar === 'string' || scalar === 'bytes';
  return (id << 3) | (isDelimited ? 2 : 0);
}

const SCALARS = {
  string: ['string', (writer: protobuf.Writer, value: string) => writer.string(value)],
  bytes: ['object', (writer: protobuf.Writer, value: Uint8Array) => writer.bytes(value)],
  bool: ['boolean', (writer: protobuf.Writer, value: boolean) => writer.bool(value)],
  int32: ['number', (writer: protobuf.Writer, value: number) => writer.int32(value)],
  int64: ['number', (writer: protobuf.Writer, value: number) => writer.int64(value)],
} as const;
