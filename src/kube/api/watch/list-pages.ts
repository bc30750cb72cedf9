import { errorText, isMapping, NodeplaneError } from '../../../core/index.ts';
import { isProtobuf, readList } from '../../objects/protobuf/envelope.ts';
import type { Message } from '../../objects/protobuf/message.ts';
import { type ApiClient, isStatus } from '../client/api-client.ts';
import { wholeBody } from '../client/whole-body.ts';
import type { WatchTarget } from './target.ts';

/** As client-go: a page of slices with ten endpoints each is about 2 MB. */
const PAGE_SIZE = 500;

/** The longest text V8 makes: a page of 500 objects of the size etcd holds may come near it. */
const LARGEST_PAGE = 512 * 1024 * 1024 - 32;

/** One page of a list. */
export interface ListPage {
  readonly items: readonly unknown[];
  /** metadata.resourceVersion: of the whole list, the same on every page. */
  readonly version: string;
}

/**
 * Lists a resource page by page. No resourceVersion is asked for, so that the server answers with its latest state and
 * never with what its cache held some time ago: an old state would take away what already exists.
 *
 * When the later pages are no longer available (410: the snapshot was compacted meanwhile) the whole list is read anew
 * without paging, so that a busy cluster cannot keep it from ever coming to an end; `onRestart` is called before.
 *
 * @param largest bytes of one page, at most
 * @throws ERR_API for an answer that is no list, or larger; ApiStatusError
 */
export async function* listPages(
  client: ApiClient,
  target: WatchTarget,
  signal: AbortSignal,
  onRestart: () => void,
  largest = LARGEST_PAGE,
): AsyncGenerator<ListPage> {
  let paging: Readonly<Record<string, string>> = { limit: String(PAGE_SIZE) };
  for (;;) {
    let page: Page;
    try {
      page = await readPage(client, target, paging, signal, largest);
    } catch (error) {
      if (!isStatus(error, 410) || paging.continue === undefined) throw error;
      onRestart();
      paging = {};
      continue;
    }
    yield page;
    if (page.continue === '') return;
    if (page.continue === paging.continue) throw unreadable(target.path, 'a page names itself as the next one');
    paging = { ...paging, continue: page.continue };
  }
}

interface Page extends ListPage {
  /** The token for the next page; empty: this was the last one. */
  readonly continue: string;
}

async function readPage(
  client: ApiClient,
  { path, query, message }: WatchTarget,
  paging: Readonly<Record<string, string>>,
  signal: AbortSignal,
  largest: number,
): Promise<Page> {
  const request = { method: 'GET', path, query: { ...query, ...paging }, signal } as const;
  const { body, contentType } = await client.send({ ...request, readsProtobuf: message !== undefined });
  const bytes = await wholeBody(body, largest, () => unreadable(path, `an answer is longer than ${largest} bytes`));
  const list = parseList(path, bytes, isProtobuf(contentType) ? message : undefined);
  const { items, metadata } = isMapping(list) ? list : {};
  const { resourceVersion, continue: next } = isMapping(metadata) ? metadata : {};
  // An empty list may come as null.
  if (typeof resourceVersion !== 'string' || !(Array.isArray(items) || items === null)) {
    throw unreadable(path, 'expected a list with "items" and "metadata.resourceVersion"');
  }
  return { items: items ?? [], version: resourceVersion, continue: typeof next === 'string' ? next : '' };
}

/** @param message the fields of the objects of a list in protobuf; undefined: it is in JSON */
function parseList(path: string, body: Buffer, message: Message | undefined): unknown {
  try {
    return message ? readList(message, body) : JSON.parse(body.toString('utf8'));
  } catch (error) {
    throw unreadable(path, errorText(error));
  }
}

function unreadable(path: string, reason: string): NodeplaneError {
  return new NodeplaneError('ERR_API', `Cannot read the API server's list of ${path}: ${reason}`);
}
