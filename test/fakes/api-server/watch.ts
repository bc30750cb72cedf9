import type { ServerResponse } from 'node:http';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { type ApiResource, apiVersionOf } from './api-object.ts';
import type { Change, ObjectHistory } from './object-history.ts';
import type { Selector } from './selector.ts';
import type { WireFormat } from './wire-format.ts';

/** Of one write. */
const PIECE_BYTES = 64 * 1024;

export interface WatchOptions {
  readonly resource: ApiResource;
  readonly selector: Selector;
  readonly format: WireFormat;
  /** Changes after this version are sent. */
  readonly from: number;
  readonly bookmarks: boolean;
  readonly timeoutSeconds: number;
  /** Whether nothing shall be sent now. */
  readonly isStalled: () => boolean;
}

/** One open watch. */
export class Watch {
  readonly #response: ServerResponse;
  readonly #history: ObjectHistory;
  readonly #options: WatchOptions;
  readonly #timers: NodeJS.Timeout[] = [];
  #unlisten: () => void = () => {};

  constructor(response: ServerResponse, history: ObjectHistory, options: WatchOptions) {
    this.#response = response;
    this.#history = history;
    this.#options = options;
    response.on('close', () => this.#close());
  }

  get resource(): ApiResource {
    return this.#options.resource;
  }

  get format(): WireFormat {
    return this.#options.format;
  }

  /**
   * Sends all objects as if they had just been added, and optionally the bookmark that says so. What is large goes out piece by
   * piece, as a real server sends it: the client reads the first ones while the others are made.
   */
  async sendInitialEvents(withEnd: boolean): Promise<void> {
    const { resource, selector, format } = this.#options;
    const { version } = this.#history;
    let piece: Uint8Array[] = [];
    let size = 0;
    for (const object of this.#history.objects(resource).filter(selector)) {
      const event = format.event('ADDED', object);
      piece.push(event);
      size += event.length;
      if (size < PIECE_BYTES) continue;
      this.raw(Buffer.concat(piece));
      piece = [];
      size = 0;
      await nextTurn();
    }
    if (size > 0) this.raw(Buffer.concat(piece));
    if (withEnd) this.bookmark({ annotations: { 'k8s.io/initial-events-end': 'true' } }, version);
  }

  start(): void {
    for (const change of this.#history.changesSince(this.#options.from)) this.#sendChange(change);
    this.#unlisten = this.#history.listen((change) => this.#sendChange(change));
    this.after(this.#options.timeoutSeconds * 1000, () => {
      if (!this.#options.isStalled()) this.end();
    });
  }

  /** Calls `fn` later unless the watch is over by then. */
  after(ms: number, fn: () => void): void {
    this.#timers.push(setTimeout(fn, ms));
  }

  /** Tells the present version, without an object. */
  bookmark(metadata: Readonly<Record<string, unknown>> = {}, version = this.#history.version): void {
    if (!this.#options.bookmarks) return;
    const { resource } = this.#options;
    const object = {
      kind: resource.kind,
      apiVersion: apiVersionOf(resource),
      metadata: { resourceVersion: String(version), creationTimestamp: null, ...metadata },
    };
    this.event('BOOKMARK', object);
  }

  error(status: object): void {
    this.event('ERROR', { kind: 'Status', apiVersion: 'v1', ...status });
    this.end();
  }

  /** Sends an event in the format of this watch; types and objects may be such as no server sends. */
  event(type: string, object: object): void {
    this.raw(this.format.event(type, object));
  }

  /** Sends something in place of an event that cannot be read. */
  garbage(): void {
    this.raw(this.format.garbage);
  }

  /** Sends this as it is. */
  raw(content: string | Uint8Array): void {
    if (!this.#options.isStalled()) this.#response.write(content);
  }

  /** As at the end of timeoutSeconds. */
  end(): void {
    this.#response.end();
  }

  /** Breaks the connection, after half an event if so wanted. */
  reset(inMidEvent = false): void {
    if (inMidEvent) this.raw(this.format.halfEvent);
    // Lets the half event out first.
    setImmediate(() => this.#response.destroy());
  }

  /** An object that comes into or out of the selection is added or deleted, as far as this watch is concerned. */
  #sendChange({ resource, before, after, deleted }: Change): void {
    if (resource !== this.#options.resource) return;
    const { selector } = this.#options;
    const was = before !== undefined && selector(before);
    const is = !deleted && selector(after);
    if (is) this.event(was ? 'MODIFIED' : 'ADDED', after);
    else if (was) this.event('DELETED', after);
  }

  #close(): void {
    this.#unlisten();
    for (const timer of this.#timers) clearTimeout(timer);
  }
}
