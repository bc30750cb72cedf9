import {
  encodeEvent,
  encodeList,
  encodeObject,
  hasMessages,
  inFrame,
  type TypedList,
  type TypedObject,
} from './protobuf/index.ts';

/** How answers are written. */
export interface WireFormat {
  /** The Content-Type of an answer. */
  readonly type: string;
  readonly watchType: string;
  object(object: object): Uint8Array;
  list(list: TypedList): Uint8Array;
  /** One event of a watch, with all that separates it from the next. */
  event(type: string, object: object): Uint8Array;
  /** The beginning of an event. */
  readonly halfEvent: Uint8Array;
  /** What stands where an event would, and is none. */
  readonly garbage: Uint8Array;
}

export const JSON_FORMAT: WireFormat = {
  type: 'application/json',
  watchType: 'application/json',
  object: (object) => Buffer.from(JSON.stringify(object)),
  list: ({ items, ...list }) => {
    // The items of a typed list carry neither kind nor version.
    const bare = items.map(({ kind, apiVersion, ...fields }) => fields);
    return Buffer.from(JSON.stringify({ ...list, items: bare }));
  },
  event: (type, object) => Buffer.from(`${JSON.stringify({ type, object })}\n`),
  halfEvent: Buffer.from('{"type":"DELETED","object":{"kind":"Serv'),
  garbage: Buffer.from('{"type":\n'),
};

export const PROTOBUF_FORMAT: WireFormat = {
  type: 'application/vnd.kubernetes.protobuf',
  watchType: 'application/vnd.kubernetes.protobuf;stream=watch',
  object: (object) => encodeObject(object as TypedObject),
  list: encodeList,
  event: (type, object) => encodeEvent(type, object as TypedObject),
  // Four bytes of length, the type, and of the object the start of its envelope.
  halfEvent: Buffer.from('\0\0\x01\0\x0a\x07DELETED\x12\xf4\x01\x0a\xf1\x01k8s\0\x0a\x0d', 'latin1'),
  garbage: inFrame(Buffer.from('\xff\xff\xff\xff\xff\xff', 'latin1')),
};

/** Which formats a server has: those of a real one; JSON alone; or protobuf for all who take it, be it last or by `*`. */
export type Speaks = 'both' | 'json' | 'protobuf';

/**
 * The format of an answer: the first one the client names that the server has. Custom resources are written as JSON only.
 * Undefined: the client takes none of them, which is answered 406.
 *
 * @param apiVersion of what the request is about; undefined: of something that there is not
 */
export function chooseFormat(
  accept: string | undefined,
  apiVersion: string | undefined,
  speaks: Speaks,
): WireFormat | undefined {
  const isBuiltIn = apiVersion === undefined || hasMessages(apiVersion);
  const formats = speaks !== 'json' && isBuiltIn ? [JSON_FORMAT, PROTOBUF_FORMAT] : [JSON_FORMAT];
  const ranges = rangesOf(accept || '*/*');
  if (speaks === 'protobuf' && isBuiltIn && ranges.some((range) => fits(PROTOBUF_FORMAT, range)))
    return PROTOBUF_FORMAT;
  for (const range of ranges) {
    const format = formats.find((candidate) => fits(candidate, range));
    if (format) return format;
  }
  return undefined;
}

function fits({ type }: WireFormat, range: string): boolean {
  return range === type || range === 'application/*' || range === '*/*';
}

/** The media types of an Accept header, those the client likes best first; without those that convert to another kind. */
function rangesOf(accept: string): readonly string[] {
  const clauses = accept.split(',').map((clause) => {
    const [range = '', ...parameters] = clause.split(';').map((part) => part.trim());
    const quality = parameters.find((parameter) => parameter.startsWith('q='))?.slice(2) ?? '1';
    return { range, quality: Number(quality), converts: parameters.some((parameter) => parameter.startsWith('as=')) };
  });
  return clauses
    .filter(({ converts, quality }) => !converts && quality > 0)
    .sort((a, b) => b.quality - a.quality)
    .map(({ range }) => range);
}
