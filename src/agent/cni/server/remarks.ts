/** A request that was answered, as far as it matters which of its remarks are new. */
export interface RemarkedRequest {
  readonly verb: string;
  /** What the plugin was given on standard input. */
  readonly config: string;
  readonly failed: boolean;
  /** What the plugin had to say to people, a line for each cause. */
  readonly remarks: string;
}

/** Networks and verbs whose remarks are known, and remarks of each; a node has a handful, and callers can invent names. */
const MOST = 100;

/**
 * Keeps a remark that holds for every pod from being made for every pod. One is new when the request before it, of the same
 * verb and network, did without: the cause is new, or went and came back.
 */
export class Remarks {
  readonly #last = new Map<string, ReadonlySet<string>>();

  /** The lines of a request that are new, joined; '' when there are none. */
  fresh({ verb, config, failed, remarks }: RemarkedRequest): string {
    const lines = remarks.split('\n').flatMap((line) => line.trim() || []);
    if (lines.length === 0 && this.#last.size === 0) return '';
    const key = `${verb} ${networkOf(config)}`;
    const before = this.#last.get(key);
    const fresh = lines.filter((line) => !before?.has(line));
    // A request that failed may not have come to where a cause is looked for.
    const now = new Set((failed ? [...(before ?? []), ...lines] : lines).slice(-MOST));
    this.#last.delete(key);
    if (now.size > 0) this.#last.set(key, now);
    for (const oldest of [...this.#last.keys()].slice(0, -MOST)) this.#last.delete(oldest);
    return [...new Set(fresh)].join('\n');
  }
}

/** The name in a configuration; '' when it has none. */
function networkOf(config: string): string {
  try {
    return String((JSON.parse(config) as { name?: unknown } | null)?.name ?? '');
  } catch {
    return '';
  }
}
