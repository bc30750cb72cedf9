import { inSlices, type Steps } from '../../core/index.ts';
import { type HttpAnswer, type HttpRequest, textAnswer } from '../http/http-listener.ts';
import type { Pages } from '../http/http-server.ts';
import { toLocal } from '../http/local-clients.ts';
import type { ServiceView } from './collect/service-index.ts';
import { statusHtml } from './html/status-html.ts';
import type { OwnCommands } from './own-commands.ts';
import { STATUS_LIMITS, type Status } from './status.ts';

export const STATUS_PATH = '/status';

/** Nothing is loaded from anywhere, run, or framed, whatever a name may hold. */
const HTML_HEADERS = {
  'Content-Type': 'text/html; charset=utf-8',
  'X-Content-Type-Options': 'nosniff',
  'Cache-Control': 'no-store',
  'Referrer-Policy': 'no-referrer',
  'Content-Security-Policy':
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
};
const JSON_HEADERS = {
  'Content-Type': 'application/json',
  'X-Content-Type-Options': 'nosniff',
  'Cache-Control': 'no-store',
};

type Format = 'html' | 'json';

/**
 * The page that shows how the node stands. It names all Services, so the metrics port shows it to clients on this machine alone;
 * whoever asked for an address of its own (--status-bind-address) decides who reaches that.
 *
 * Answers are made one after the other, in slices, and those who ask for the same meanwhile get the same: many clients hold the
 * event loop no longer than one.
 */
export class StatusPage {
  readonly #collect: (view: ServiceView) => Steps<Status>;
  readonly #commands: OwnCommands;
  readonly #underWay = new Map<string, Promise<HttpAnswer>>();
  #last: Promise<unknown> = Promise.resolve();

  constructor(collect: (view: ServiceView) => Steps<Status>, commands: OwnCommands) {
    this.#collect = collect;
    this.#commands = commands;
  }

  /** For the metrics port. */
  readonly local: Pages = { [STATUS_PATH]: (request) => toLocal(request, () => this.#answer(request)) };

  /** For an address of its own. */
  readonly open: Pages = {
    [STATUS_PATH]: (request) => this.#answer(request),
    '/': () => ({ status: 302, headers: { Location: STATUS_PATH }, body: '' }),
  };

  #answer(request: HttpRequest): HttpAnswer | Promise<HttpAnswer> {
    if (request.method !== 'GET' && request.method !== 'HEAD') {
      return { ...textAnswer(405, 'Only GET\n'), headers: { Allow: 'GET, HEAD' } };
    }
    const view = viewOf(request.query);
    const format = formatOf(request);
    const key = JSON.stringify([format, view]);
    const known = this.#underWay.get(key);
    if (known) return known;
    const made = this.#last
      .then(() => inSlices(this.#make(view, format)))
      .finally(() => {
        this.#underWay.delete(key);
      });
    this.#underWay.set(key, made);
    this.#last = made.catch(() => {});
    return made;
  }

  *#make(view: ServiceView, format: Format): Steps<HttpAnswer> {
    const status = yield* this.#collect(view);
    yield;
    if (format === 'json') return { status: 200, headers: JSON_HEADERS, body: `${JSON.stringify(status)}\n` };
    return { status: 200, headers: HTML_HEADERS, body: yield* statusHtml(status, this.#commands) };
  }
}

function viewOf(query: URLSearchParams): ServiceView {
  const page = Number(query.get('page'));
  return {
    query: (query.get('q') ?? '').trim().slice(0, STATUS_LIMITS.query),
    page: Number.isSafeInteger(page) && page > 0 ? page : 1,
  };
}

/** `format=` decides; without it a client that takes JSON and no HTML gets JSON, and people with curl read HTML. */
function formatOf({ query, headers }: HttpRequest): Format {
  const asked = query.get('format');
  if (asked === 'json' || asked === 'html') return asked;
  const accept = headers.accept ?? '';
  return accept.includes('application/json') && !accept.includes('text/html') ? 'json' : 'html';
}
