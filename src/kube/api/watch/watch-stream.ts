import { isMapping, yielder } from '../../../core/index.ts';
import { INITIAL_EVENTS_END } from '../../objects/known-names.ts';
import { isProtobuf, readWatchEvent } from '../../objects/protobuf/envelope.ts';
import { type Message, WireError } from '../../objects/protobuf/message.ts';
import type { ApiResponse } from '../client/api-client.ts';
import { frames } from './frames.ts';
import { GarbageError } from './garbage-error.ts';
import { lines } from './lines.ts';
import { withoutUnread } from './unread-members.ts';

/** One event of a watch. */
export type WatchEvent =
  | { readonly type: 'ADDED' | 'MODIFIED' | 'DELETED'; readonly object: unknown; readonly version: string | undefined }
  | { readonly type: 'BOOKMARK'; readonly version: string | undefined; readonly endsInitialEvents: boolean }
  /** `status` is a Status object: 410 when the version asked for is too old. */
  | { readonly type: 'ERROR'; readonly status: unknown };

/**
 * Reads the events of a watch, in JSON or protobuf. Ends when the server ends it; throws ERR_API when it breaks, GarbageError
 * for nonsense.
 *
 * The event loop is given back between them: what a busy server sends at once (a streaming list, say) comes in pieces that
 * are there already, and reading what is there lets nothing else run.
 *
 * @param message the fields of an object in protobuf
 */
export async function* watchEvents(
  { body, contentType }: Pick<ApiResponse, 'body' | 'contentType'>,
  message: Message = [],
): AsyncGenerator<WatchEvent> {
  // Asked before each step of an event, the last of which is what the reader of events does with it.
  const rest = yielder();
  for await (const piece of isProtobuf(contentType) ? frames(body) : lines(body)) {
    const read = typeof piece === 'string' ? withoutUnread(piece) : piece;
    let wait = rest();
    if (wait) await wait;
    const event = typeof read === 'string' ? lineEvent(read) : frameEvent(message, read);
    wait = rest();
    if (wait) await wait;
    yield event;
    wait = rest();
    if (wait) await wait;
  }
}

function lineEvent(line: string): WatchEvent {
  let value: unknown;
  try {
    value = JSON.parse(line);
  } catch {
    // Told below, with the line.
  }
  const event = isMapping(value) ? eventOf(value.type, value.object) : undefined;
  if (event) return event;
  throw new GarbageError(JSON.stringify(line.slice(0, 60)));
}

function frameEvent(message: Message, frame: Buffer): WatchEvent {
  try {
    const { type, object } = readWatchEvent(message, frame);
    const event = eventOf(type, object);
    if (event) return event;
    throw new WireError(`it has the type ${JSON.stringify(type)}`);
  } catch (error) {
    if (!(error instanceof WireError)) throw error;
    throw new GarbageError(`${frame.length} bytes that are none: ${error.message}`);
  }
}

/** Undefined: there is no such type of event. */
function eventOf(type: unknown, object: unknown): WatchEvent | undefined {
  const metadata = isMapping(object) ? object.metadata : undefined;
  const { resourceVersion, annotations } = isMapping(metadata) ? metadata : {};
  const version = typeof resourceVersion === 'string' && resourceVersion !== '' ? resourceVersion : undefined;
  switch (type) {
    case 'ADDED':
    case 'MODIFIED':
    case 'DELETED':
      return { type, object, version };
    case 'BOOKMARK': {
      const endsInitialEvents = isMapping(annotations) && annotations[INITIAL_EVENTS_END] === 'true';
      return { type, version, endsInitialEvents };
    }
    case 'ERROR':
      return { type, status: object };
    default:
      return undefined;
  }
}
