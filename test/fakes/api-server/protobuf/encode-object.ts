import protobuf from 'protobufjs';
import { encodeMessage } from './encode-message.ts';

/** What every object and list says of itself. */
export interface TypedObject {
  readonly apiVersion: string;
  readonly kind: string;
}

export interface TypedList extends TypedObject {
  readonly metadata: object;
  readonly items: readonly TypedObject[];
}

/** What comes before every envelope: "k8s" and the number of its form. */
const MAGIC = Buffer.from('k8s\0');

/** The package of the definitions, by API version. */
const PACKAGES: Readonly<Record<string, string>> = {
  v1: 'core',
  'discovery.k8s.io/v1': 'discovery',
  'networking.k8s.io/v1': 'networking',
  'coordination.k8s.io/v1': 'coordination',
  'events.k8s.io/v1': 'events',
};

/** The messages of objects by what never changes: the stored state of one version. */
const messages = new WeakMap<TypedObject, Uint8Array>();

/** Whether there is a protobuf form of this API version: custom resources have none. */
export function hasMessages(apiVersion: string): boolean {
  return Object.hasOwn(PACKAGES, apiVersion);
}

/** An answer: an object or a `Status` in its envelope. */
export function encodeObject(object: TypedObject): Uint8Array {
  return inEnvelope(object, messageOf(object));
}

/** An answer: a list, of which every item is encoded once only. */
export function encodeList(list: TypedList): Uint8Array {
  const writer = protobuf.Writer.create();
  writer.uint32(FIELD_1).bytes(encodeMessage('meta.ListMeta', list.metadata, `${list.kind}.metadata`));
  for (const item of list.items) writer.uint32(FIELD_2).bytes(messageOf(item));
  return inEnvelope(list, writer.finish());
}

/** A frame of a watch; its event is in no envelope, the object of the event is. */
export function encodeEvent(type: string, object: TypedObject): Uint8Array {
  const raw = encodeObject(object);
  return inFrame(encodeMessage('meta.WatchEvent', { type, object: { raw } }, 'WatchEvent'));
}

/** The bytes with their length before them, four bytes with the highest first. */
export function inFrame(bytes: Uint8Array): Uint8Array {
  const frame = Buffer.allocUnsafe(4 + bytes.length);
  frame.writeUInt32BE(bytes.length);
  frame.set(bytes, 4);
  return frame;
}

function inEnvelope({ apiVersion, kind }: TypedObject, raw: Uint8Array): Uint8Array {
  const unknown = { typeMeta: { apiVersion, kind }, raw };
  return Buffer.concat([MAGIC, encodeMessage('meta.Unknown', unknown, 'Unknown')]);
}

function messageOf(object: TypedObject): Uint8Array {
  let message = messages.get(object);
  if (!message) {
    const { apiVersion, kind, ...fields } = object;
    const name = kind === 'Status' ? 'meta.Status' : `${PACKAGES[apiVersion]}.${kind}`;
    message = encodeMessage(name, fields, kind);
    messages.set(object, message);
  }
  return message;
}

/** Tags of the fields of a list. */
const [FIELD_1, FIELD_2] = [(1 << 3) | 2, (2 << 3) | 2];
