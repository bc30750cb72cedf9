/** What the server shall do wrong, or not be able to do. All fields may be changed at any time. */
export interface Misbehaviour {
  /** Streaming lists (`sendInitialEvents`); without them such a request is answered 422. */
  streamingLists: boolean;
  /** Resources whose streaming lists never send the bookmark that ends the initial events. */
  readonly endlessLists: Set<string>;
  /** API groups it does not have: 404. */
  readonly missingGroups: Set<string>;
  /** The bearer tokens it accepts; undefined: no token is asked for. */
  tokens: Set<string> | undefined;
  /** What the client may do, as in a ClusterRole; undefined: everything. */
  rules: readonly PolicyRule[] | undefined;
  /** Every new watch that names a version is refused as too old. `header`: as status 410, `event`: in the stream. */
  refuseWatchVersions: 'header' | 'event' | undefined;
  /** Continue tokens are too old at once. */
  expireContinueTokens: boolean;
  /** Answers are sent in pieces of so many bytes, with pauses. */
  slow: { readonly bytes: number; readonly pauseMs: number } | undefined;
  /** Every answer begins so many milliseconds late, as that of a server which asks etcd first. */
  latencyMs: number;
  /** Requests are received and never answered. */
  stallAnswers: boolean;
  /** So many of the next requests about one object are done, and their answers are lost with the connection. */
  lostAnswers: number;
  /** Open watches send nothing any more, and do not end either. */
  stallWatches: boolean;
  /** Every watch is cut this long after its start, with half an event at the end. */
  cutWatchesAfterMs: number | undefined;
  /** The next requests are answered so, one each, whatever they are. */
  readonly answers: Answer[];
}

export interface Answer {
  readonly status: number;
  readonly retryAfterSeconds?: number;
  /** @default a Status object */
  readonly body?: string;
  /** The Content-Type of `body`. @default JSON */
  readonly type?: string;
}

/** A rule of a Role or ClusterRole. */
export interface PolicyRule {
  readonly apiGroups: readonly string[];
  readonly resources: readonly string[];
  readonly verbs: readonly string[];
}

export function behaveWell(): Misbehaviour {
  return {
    streamingLists: true,
    endlessLists: new Set(),
    missingGroups: new Set(),
    tokens: undefined,
    rules: undefined,
    refuseWatchVersions: undefined,
    expireContinueTokens: false,
    slow: undefined,
    latencyMs: 0,
    stallAnswers: false,
    lostAnswers: 0,
    stallWatches: false,
    cutWatchesAfterMs: undefined,
    answers: [],
  };
}
