/** What a request is about, as far as others must wait for it. */
export interface Claim {
  readonly network: string;
  /** Container and interface; undefined for a request about no single one. */
  readonly attachment: string | undefined;
  /** Whether nothing else of the network may go on meanwhile (GC). */
  readonly wholeNetwork: boolean;
}

/** A place in the queue. */
export interface Ticket {
  /** Resolves when it is this request's turn. */
  readonly turn: Promise<void>;
  /** Ends the request, or gives the place up before its turn. Safe to call twice. */
  leave(): void;
}

interface Place {
  readonly claim: Claim;
  readonly begin: () => void;
}

/**
 * Decides which requests go on at the same time: never two about the same attachment, nothing beside a GC of its network,
 * and not more than a number of them at all. First come, first served among those that exclude each other.
 */
export class RequestQueue {
  readonly #limit: number;
  readonly #running = new Set<Place>();
  #waiting: Place[] = [];

  constructor(limit: number) {
    this.#limit = limit;
  }

  get length(): number {
    return this.#running.size + this.#waiting.length;
  }

  enter(claim: Claim): Ticket {
    let begin: () => void = () => {};
    const turn = new Promise<void>((resolve) => {
      begin = resolve;
    });
    const place = { claim, begin };
    this.#waiting.push(place);
    this.#advance();
    return { turn, leave: () => this.#leave(place) };
  }

  #leave(place: Place): void {
    this.#waiting = this.#waiting.filter((other) => other !== place);
    this.#running.delete(place);
    this.#advance();
  }

  #advance(): void {
    // Whoever waits is in the way of those behind, so that a GC is not overtaken for ever.
    const inTheWay = [...this.#running];
    const waiting: Place[] = [];
    for (const place of this.#waiting) {
      const free = this.#running.size < this.#limit && !inTheWay.some(({ claim }) => exclude(claim, place.claim));
      inTheWay.push(place);
      if (free) {
        this.#running.add(place);
        place.begin();
      } else waiting.push(place);
    }
    this.#waiting = waiting;
  }
}

function exclude(a: Claim, b: Claim): boolean {
  if (a.attachment !== undefined && a.attachment === b.attachment) return true;
  return a.network === b.network && (a.wholeNetwork || b.wholeNetwork);
}
