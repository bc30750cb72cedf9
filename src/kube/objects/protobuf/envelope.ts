import { Field, type Message, messageOf, readMessage, WireError } from './message.ts';

// What API servers send around their objects in protobuf (k8s.io/apimachinery/pkg/runtime/serializer/protobuf).

/** The media type of an answer, and with `;stream=watch` of a watch. */
export const PROTOBUF = 'application/vnd.kubernetes.protobuf';

/** Whether a Content-Type header says so. */
export function isProtobuf(contentType: string | undefined): boolean {
  return contentType?.split(';', 1)[0]?.trim().toLowerCase() === PROTOBUF;
}

/** An object begins with these four bytes; a runtime.Unknown message follows. */
const MAGIC = Buffer.from('k8s\0', 'latin1');
const UNKNOWN = messageOf({ 2: new Field('raw', 'bytes') });

/**
 * Reads an object, list or Status.
 *
 * @param message its fields
 * @returns a mapping, as JSON.parse would make it of the object in JSON
 * @throws WireError for anything else
 */
export function readObject(message: Message, bytes: Buffer): Record<string, unknown> {
  if (!bytes.subarray(0, MAGIC.length).equals(MAGIC)) throw new WireError('it does not begin as an object does');
  const { raw = Buffer.alloc(0) } = readMessage(UNKNOWN, bytes.subarray(MAGIC.length));
  return readMessage(message, raw as Buffer);
}

/** meta/v1 WatchEvent, the message in a frame of a watch. It has no envelope of its own. */
const WATCH_EVENT = messageOf({
  1: new Field('type', 'text'),
  2: new Field('object', 'message', { message: messageOf({ 1: new Field('raw', 'bytes') }) }),
});

/** meta/v1 Status */
export const STATUS = messageOf({
  3: new Field('message', 'text'),
  4: new Field('reason', 'text'),
  5: new Field('details', 'message', { message: messageOf({ 5: new Field('retryAfterSeconds', 'integer') }) }),
  6: new Field('code', 'integer'),
});

/**
 * Reads an event of a watch.
 *
 * @param message the fields of its object; an ERROR has a Status
 * @returns type and object, as in JSON
 * @throws WireError for anything else
 */
export function readWatchEvent(message: Message, frame: Buffer): { readonly type: unknown; readonly object: unknown } {
  const { type, object } = readMessage(WATCH_EVENT, frame);
  const { raw } = (object ?? {}) as { raw?: Buffer };
  if (raw === undefined) return { type, object: undefined };
  return { type, object: readObject(type === 'ERROR' ? STATUS : message, raw) };
}

const LIST_META = messageOf({ 2: new Field('resourceVersion', 'text'), 3: new Field('continue', 'text') });

/**
 * Reads a list.
 *
 * @param message the fields of its objects
 * @returns metadata and items, as in JSON
 * @throws WireError for anything else
 */
export function readList(message: Message, bytes: Buffer): Record<string, unknown> {
  const items = new Field('items', 'message', { message, repeated: true });
  const list = messageOf({ 1: new Field('metadata', 'message', { message: LIST_META }), 2: items });
  return { items: [], ...readObject(list, bytes) };
}
