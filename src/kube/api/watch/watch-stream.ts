import { NodeplaneError, yielder } from '../../../core/index.ts';
import { isMapping } from '../../objects/field-reader.ts';
import { lines } from './lines.ts';
import { withoutUnread } from './unread-members.ts';

/** metadata.annotations of the bookmark that ends the initial events of a streaming list (KEP-3157). */
const INITIAL_EVENTS_END = 'k8s.io/initial-events-end';

/** One line of a watch. */
export type WatchEvent =
  | { readonly type: 'ADDED' | 'MODIFIED' | 'DELETED'; readonly object: unknown; readonly version: string | undefined }
  | { readonly type: 'BOOKMARK'; readonly version: string | undefined; readonly endsInitialEvents: boolean }
  /** `status` is a Status object: 410 when the version asked for is too old. */
  | { readonly type: 'ERROR'; readonly status: unknown };

/** A line that is not an event: what follows cannot be trusted either. */
export class GarbageError extends NodeplaneError {
  constructor(line: string) {
    const start = JSON.stringify(line.slice(0, 60));
    super('ERR_API', `Cannot read the API server's watch: expected an event, found ${start}`);
    this.name = 'GarbageError';
  }
}

/**
 * Reads the events of a watch. Ends when the server ends it; throws ERR_API when it breaks, GarbageError for nonsense.
 *
 * The event loop is given back between them: what a busy server sends at once (a streaming list, say) comes in pieces that
 * are there already, and reading what is there lets nothing else run.
 *
 * @param rest asked before each step of an event, the last of which is what the reader of events does with it. @default the event loop is given back every 10 ms
 */
export async function* watchEvents(body: AsyncIterable<Uint8Array>, rest = yielder()): AsyncGenerator<WatchEvent> {
  for await (const line of lines(body)) {
    const read = withoutUnread(line);
    let wait = rest();
    if (wait) await wait;
    const event = parseEvent(read);
    wait = rest();
    if (wait) await wait;
    yield event;
    wait = rest();
    if (wait) await wait;
  }
}

function parseEvent(line: string): WatchEvent {
  let value: unknown;
  try {
    value = JSON.parse(line);
  } catch {
    throw new GarbageError(line);
  }
  const { type, object } = isMapping(value) ? value : {};
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
      throw new GarbageError(line);
  }
}
