import { type Clock, errorText, inBackground, type Timer } from '../../core/index.ts';
import { type ApiClient, ApiStatusError } from '../api/client/api-client.ts';
import type { ObjectResource } from '../api/client/api-object.ts';
import { backOffMs } from '../api/client/back-off.ts';
import { ObjectClient } from '../api/client/object-client.ts';
import { isRefused } from '../api/client/object-error.ts';
import { decodeObject } from '../objects/kind.ts';
import { KINDS } from '../objects/kinds.ts';
import { KNOWN_ANNOTATIONS } from '../objects/known-names.ts';
import type { Node, NodeCondition } from '../objects/types.ts';

/**
 * Annotations too are written through `status`, as flannel and Cilium do: whoever may write that of a Node cannot change its
 * taints or its pod CIDR.
 */
export const NODE_STATUS: ObjectResource = {
  name: 'nodes',
  subresource: 'status',
  group: '',
  version: 'v1',
  kind: 'Node',
  namespaced: false,
};

/** What owners say within this time of each other, such as both families, is one write. */
const COLLECT_MS = 20;
/** Between two writes for what owners say. */
const WRITE_MS = 1000;
/** Between a write and the next one for what others took away: who keeps doing so costs the API server one request a minute. */
const REWRITE_MS = 60_000;
/** A refusal that will be the same until somebody changes the cluster: no permission, most of all. */
const REFUSED_MS = 60_000;

/** What becomes of what this node says about itself. */
export type AnnouncerEvent =
  /** `null`: taken away. */
  | {
      readonly kind: 'written';
      readonly annotations: Readonly<Record<string, string | null>>;
      readonly conditions: readonly WantedCondition[];
    }
  | {
      readonly kind: 'failed';
      readonly error: Error;
      readonly retryInMs: number;
      /** Whether the attempt before failed in the same way. */
      readonly isRepeated: boolean;
    }
  /** There is no API server to write to. Told once. */
  | { readonly kind: 'noServer' };

export interface NodeAnnouncerOptions {
  /** Undefined: there is no API server, and nothing is written. */
  readonly client: ApiClient | undefined;
  /** The Node object of this machine. */
  readonly nodeName: string;
  readonly clock: Clock;
  /** A number from 0 to 1 (exclusive). @default Math.random */
  readonly random?: () => number;
  /** Called synchronously. Must not throw. */
  readonly observe: (event: AnnouncerEvent) => void;
}

/** Annotations by their names, which are of known-names.ts; undefined: there is to be none of this name. */
export type WantedAnnotations = Readonly<Record<string, string | undefined>>;

/** A condition of the Node that is to have this status wherever the Node has the condition. */
export interface WantedCondition extends NodeCondition {
  /** CamelCase, for programs. */
  readonly reason: string;
  /** For people. */
  readonly message: string;
}

interface SeenNode {
  readonly uid: string | undefined;
  readonly annotations: Readonly<Record<string, string>>;
  readonly conditions: readonly NodeCondition[];
}

/** What has to change. */
interface Difference {
  /** As a merge patch. */
  readonly annotations: Readonly<Record<string, string | null>>;
  readonly conditions: readonly WantedCondition[];
}

/**
 * Writes annotations and conditions of this machine's own Node object: several owners say what they want, and one patch brings
 * the object there, again when somebody else takes it away. Nothing is written while the object, as it was last seen, is as
 * wanted. Everything else in it is not touched.
 */
export class NodeAnnouncer {
  readonly #options: NodeAnnouncerOptions;
  readonly #nodes: ObjectClient | undefined;
  readonly #wanted = new Map<string, WantedAnnotations>();
  readonly #wantedConditions = new Map<string, WantedCondition>();
  readonly #stopping = new AbortController();
  /** The Node as it was last seen; undefined: there is none. */
  #seen: SeenNode | undefined;
  /** Whether what differs does so for what an owner said, or a new Node, and not because others took it away. */
  #isOurChange = false;
  #differsSince: number | undefined;
  #notBefore = Number.NEGATIVE_INFINITY;
  #writtenAt = Number.NEGATIVE_INFINITY;
  #timer: Timer | undefined;
  #writing: Promise<void> | undefined;
  #failures = 0;
  #lastFailure: string | undefined;
  #toldNoServer = false;

  constructor(options: NodeAnnouncerOptions) {
    const { client } = options;
    this.#options = options;
    this.#nodes = client && new ObjectClient({ client, resource: NODE_STATUS, fieldManager: 'nodeplane' });
  }

  /**
   * Says which annotations `owner` wants from now on. What it wanted before and does not name any more is left as it is:
   * to have it taken away, name it with undefined.
   *
   * @param owner of names that no other owner says anything about
   */
  want(owner: string, annotations: WantedAnnotations): void {
    const stray = Object.keys(annotations).find((name) => !KNOWN_ANNOTATIONS.has(name));
    if (stray !== undefined)
      throw new TypeError(`The annotation ${stray} is never read, and would be written for ever`);
    if (!this.#nodes && Object.keys(annotations).length > 0) this.#tellNoServer();
    const before = this.#wanted.get(owner) ?? {};
    const names = Object.keys(annotations);
    if (names.length !== Object.keys(before).length || names.some((name) => !isSame(name, before, annotations))) {
      this.#isOurChange = true;
    }
    this.#wanted.set(owner, annotations);
    this.#consider();
  }

  /** Says which status a condition is to have from now on, if the Node has the condition: none is added. */
  wantCondition(condition: WantedCondition): void {
    if (!this.#nodes) return;
    if (this.#wantedConditions.get(condition.type)?.status !== condition.status) this.#isOurChange = true;
    this.#wantedConditions.set(condition.type, condition);
    this.#consider();
  }

  /** A Node came or changed; those of other machines do not matter. */
  nodeChanged(node: Node): void {
    if (node.metadata.name !== this.#options.nodeName) return;
    if (this.#seen?.uid !== node.metadata.uid) this.#isOurChange = true;
    this.#seen = seenIn(node);
    this.#consider();
  }

  /** A Node went. */
  nodeRemoved(name: string): void {
    if (name !== this.#options.nodeName) return;
    this.#seen = undefined;
    this.#consider();
  }

  /** How many annotations and conditions are not as wanted; 0 as well while there is no Node object. */
  get unwritten(): number {
    const { annotations, conditions } = this.#difference();
    return Object.keys(annotations).length + conditions.length;
  }

  /** Ends the work; what was written stays. Never rejects. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    this.#timer?.cancel();
    await this.#writing;
  }

  #consider(): void {
    if (!this.#nodes || this.#writing || this.#stopping.signal.aborted) return;
    this.#timer?.cancel();
    if (this.unwritten === 0) {
      this.#differsSince = undefined;
      if (this.#seen) this.#isOurChange = false;
      return;
    }
    const { clock } = this.#options;
    this.#differsSince ??= clock.now();
    const at = Math.max(
      this.#differsSince + COLLECT_MS,
      this.#notBefore,
      this.#isOurChange ? 0 : this.#writtenAt + REWRITE_MS,
    );
    this.#timer = clock.setTimer(() => this.#begin(), Math.max(0, at - clock.now()));
  }

  #begin(): void {
    inBackground('Node object', () => {
      this.#writing = this.#write().finally(() => {
        this.#writing = undefined;
        this.#consider();
      });
      return this.#writing;
    });
  }

  async #write(): Promise<void> {
    const { nodeName, clock, observe } = this.#options;
    const difference = this.#difference();
    const seen = this.#seen;
    const isOurChange = this.#isOurChange;
    this.#isOurChange = false;
    try {
      const { signal } = this.#stopping;
      const written = await this.#nodes!.strategicPatch({ name: nodeName }, this.#patchOf(difference), signal);
      this.#failures = 0;
      this.#lastFailure = undefined;
      this.#differsSince = undefined;
      this.#writtenAt = clock.now();
      this.#notBefore = clock.now() + WRITE_MS;
      // What the watch told meanwhile may be newer; if it is older, ours follows.
      const { object } = decodeObject(KINDS.Node, written);
      if (object && this.#seen === seen) this.#seen = seenIn(object);
      observe({ kind: 'written', ...difference });
    } catch (error) {
      if (this.#stopping.signal.aborted) return;
      this.#isOurChange ||= isOurChange;
      this.#failed(error as Error);
    }
  }

  #failed(error: Error): void {
    const { clock, random = Math.random, observe } = this.#options;
    const askedMs = error instanceof ApiStatusError ? error.retryAfterMs : undefined;
    const isLasting = isRefused(error, 'forbidden', 'notFound', 'invalid', 'other', 'gone');
    const retryInMs = Math.max(
      backOffMs(this.#failures++, random, askedMs),
      isLasting ? REFUSED_MS * (1 + random() / 2) : 0,
    );
    this.#notBefore = clock.now() + retryInMs;
    const text = errorText(error);
    observe({ kind: 'failed', error, retryInMs, isRepeated: text === this.#lastFailure });
    this.#lastFailure = text;
  }

  #difference(): Difference {
    const annotations: Record<string, string | null> = {};
    const seen = this.#seen;
    if (!seen) return { annotations, conditions: [] };
    for (const wanted of this.#wanted.values()) {
      for (const [name, text] of Object.entries(wanted)) {
        if (text !== seen.annotations[name]) annotations[name] = text ?? null;
      }
    }
    const isOther = ({ type, status }: WantedCondition) =>
      seen.conditions.some((found) => found.type === type && found.status !== status);
    return { annotations, conditions: [...this.#wantedConditions.values()].filter(isOther) };
  }

  #patchOf({ annotations, conditions }: Difference): Readonly<Record<string, unknown>> {
    const now = new Date(this.#options.clock.wallTime()).toISOString().replace(/\.\d+Z$/, 'Z');
    const times = { lastHeartbeatTime: now, lastTransitionTime: now };
    return {
      ...(Object.keys(annotations).length > 0 && { metadata: { annotations } }),
      ...(conditions.length > 0 && { status: { conditions: conditions.map((one) => ({ ...one, ...times })) } }),
    };
  }

  #tellNoServer(): void {
    if (!this.#toldNoServer) this.#options.observe({ kind: 'noServer' });
    this.#toldNoServer = true;
  }
}

/** Whether both say the same about a name, if only that there is to be none. */
function isSame(name: string, before: WantedAnnotations, after: WantedAnnotations): boolean {
  return name in before && before[name] === after[name];
}

function seenIn(node: Pick<Node, 'metadata' | 'status'>): SeenNode {
  const { uid, annotations = {} } = node.metadata;
  return { uid, annotations, conditions: node.status?.conditions ?? [] };
}
