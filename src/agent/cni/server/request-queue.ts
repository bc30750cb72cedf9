/** What a request is about, as far as others must wait for it. */
export interface RequestScope {
  readonly network: string;
  /** Container and interface; undefined for a request about no single one. */
  readonly attachment: string | undefined;
  /** Whether nothing else of the network may go on meanwhile (GC). */
  readonly wholeNetwork: boolean;
}

/** The turn of a request in the queue. */
export interface Ticket {
  /** Resolves when it is this request's turn. */
  readonly turn: Promise<void>;
  /** Ends the request, or gives it up before its turn. Safe to call twice. */
  leave(): void;
}

interface QueuedRequest {
  readonly scope: RequestScope;
  readonly begin: () => void;
}

/**
 * Decides which requests go on at the same time: never two about the same attachment, nothing beside a GC of its network,
 * and not more than a number of them at all. First come, first served among those that exclude each other.
 */
export class RequestQueue {
  readonly #limit: number;
  readonly #running = new Set<QueuedRequest>();
  #waiting: QueuedRequest[] = [];

  constructor(limit: number) {
    this.#limit = limit;
  }

  get length(): number {
    return this.#running.size + this.#waiting.length;
  }

  enter(scope: RequestScope): Ticket {
    let begin: () => void = () => {};
    const turn = new Promise<void>((resolve) => {
      begin = resolve;
    });
    const request = { scope, begin };
    this.#waiting.push(request);
    this.#advance();
    return { turn, leave: () => this.#leave(request) };
  }

  #leave(request: QueuedRequest): void {
    this.#waiting = this.#waiting.filter((other) => other !== request);
    this.#running.delete(request);
    this.#advance();
  }

  #advance(): void {
    // Whoever waits is in the way of those behind, so that a GC is not overtaken for ever.
    const inTheWay = [...this.#running];
    const waiting: QueuedRequest[] = [];
    for (const request of this.#waiting) {
      const free = this.#running.size < this.#limit && !inTheWay.some(({ scope }) => exclude(scope, request.scope));
      inTheWay.push(request);
      if (free) {
        this.#running.add(request);
        request.begin();
      } else waiting.push(request);
    }
    this.#waiting = waiting;
  }
}

function exclude(a: RequestScope, b: RequestScope): boolean {
  if (a.attachment !== undefined && a.attachment === b.attachment) return true;
  return a.network === b.network && (a.wholeNetwork || b.wholeNetwork);
}
