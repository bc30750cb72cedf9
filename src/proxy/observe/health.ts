import { type Clock, type IpFamily, isForeignLock } from '../../core/index.ts';
import type { Node } from '../../kube/index.ts';
import type { ProxyEvent } from '../sync/index.ts';

export interface ProxyHealthOptions {
  readonly clock: Clock;
  /** How long a wanted sync may be outstanding before the proxy counts as unhealthy; kube-proxy: twice the sync period. */
  readonly timeoutMs: number;
}

/** An answer of the health server. */
export interface HealthAnswer {
  readonly status: 200 | 503;
  readonly headers: Readonly<Record<string, string>>;
  /** One line of JSON, without a newline. */
  readonly body: string;
}

interface FamilyHealth {
  /** Calendar time, to be printed: the start, then each successful sync. */
  lastUpdated: number | undefined;
  /** Since when, by the clock's `now`, a sync is wanted that no run has taken up yet. */
  queuedSince: number | undefined;
  /** Since when, likewise, the sync now running, or failed and to be retried, is wanted. */
  unfinishedSince: number | undefined;
  /** Whether its rules were in the kernel once. */
  hasSynced: boolean;
  /** The last sync failed because another process holds a lock: what a restart of ours does not change. */
  heldUp: boolean;
}

/** The autoscaler's sign that the node will go: load balancers shall stop sending to it. */
const LEAVING_TAINT = 'ToBeDeletedByClusterAutoscaler';

const HEADERS = { 'Content-Type': 'application/json', 'X-Content-Type-Options': 'nosniff' };

/** Go's zero time, which kube-proxy shows for "never". */
const NEVER = '0001-01-01T00:00:00Z';

/**
 * Whether the proxy keeps up, as kube-proxy's /healthz and /livez tell it: unhealthy means that a family has wanted to
 * sync for longer than the timeout and has not succeeded. Feed it with `observe`; before anything is known all is well.
 */
export class ProxyHealth {
  readonly #clock: Clock;
  readonly #timeoutMs: number;
  readonly #families = new Map<IpFamily, FamilyHealth>();
  #nodeEligible = true;
  #prepared = true;

  constructor({ clock, timeoutMs }: ProxyHealthOptions) {
    this.#clock = clock;
    this.#timeoutMs = timeoutMs;
  }

  /** A ProxyObserver. */
  readonly observe = (event: ProxyEvent): void => {
    const family = this.#family(event.family);
    switch (event.kind) {
      case 'started':
        family.lastUpdated = event.at;
        break;
      case 'queued':
        family.queuedSince ??= this.#clock.now();
        break;
      case 'syncStarted':
        family.unfinishedSince ??= family.queuedSince ?? this.#clock.now();
        family.queuedSince = undefined;
        break;
      case 'syncFinished':
        family.lastUpdated = event.at;
        family.hasSynced = true;
        family.unfinishedSince = undefined;
        family.heldUp = false;
        break;
      case 'syncFailed':
        family.heldUp = isForeignLock(event.error);
        break;
    }
  };

  /**
   * Says whether the way into the kernel was found; until told, it was. While it was not, load balancers are to send
   * elsewhere; the kubelet has nothing to restart, because looking for it goes on.
   */
  setPrepared(prepared: boolean): void {
    this.#prepared = prepared;
  }

  /** Takes in our Node object; undefined: it does not exist, and load balancers should not send to it. */
  nodeChanged(node: Node | undefined): void {
    this.#nodeEligible =
      node !== undefined &&
      node.metadata.deletionTimestamp === undefined &&
      !node.spec?.taints?.some((taint) => taint.key === LEAVING_TAINT);
  }

  /** Whether the proxy can work and all families keep up, whatever the node's own fate. */
  isHealthy(): boolean {
    return this.#prepared && [...this.#families.values()].every((family) => this.#keepsUp(family));
  }

  /** Why Services do not work here yet, in words; undefined: they do. */
  whyNotReady(): string | undefined {
    if (!this.#prepared) return 'the proxy has not found its way into the kernel, or does not know all objects yet';
    for (const [name, family] of this.#families) {
      if (!family.hasSynced) return `the rules of ${name} were not in the kernel yet`;
      if (!this.#keepsUp(family)) return `the rules of ${name} are older than ${this.#timeoutMs / 1000} s`;
    }
    return undefined;
  }

  /** For load balancers: 200 if the proxy is healthy and the node is to receive traffic. */
  healthz(): HealthAnswer {
    const healthy = this.isHealthy();
    return this.#answer(healthy && this.#nodeEligible, healthy, { nodeEligible: this.#nodeEligible });
  }

  /** For the kubelet: 200 if the proxy is healthy, or what keeps it from working is not cured by a restart. */
  livez(): HealthAnswer {
    const lives = [...this.#families.values()].every((family) => family.heldUp || this.#keepsUp(family));
    return this.#answer(lives, lives, {});
  }

  #answer(good: boolean, healthy: boolean, eligibility: { readonly nodeEligible?: boolean }): HealthAnswer {
    const now = this.#clock.wallTime();
    const updates = [...this.#families.values()].flatMap(({ lastUpdated }) => lastUpdated ?? []);
    const newest = updates.length > 0 ? Math.max(...updates) : undefined;
    const families = ([...this.#families.keys()] satisfies IpFamily[]).sort();
    const status = Object.fromEntries(
      families.map((name) => {
        const family = this.#family(name);
        return [name, { lastUpdated: formatTime(family.lastUpdated), healthy: this.#keepsUp(family) }];
      }),
    );
    // The order of the fields is part of the interface.
    const body = JSON.stringify({
      lastUpdated: formatTime(good ? now : newest),
      currentTime: formatTime(now),
      ...eligibility,
      healthy,
      ...(families.length > 0 ? { status } : {}),
    });
    return { status: good ? 200 : 503, headers: HEADERS, body };
  }

  #keepsUp({ unfinishedSince, queuedSince }: FamilyHealth): boolean {
    const since = unfinishedSince ?? queuedSince;
    return since === undefined || this.#clock.now() - since < this.#timeoutMs;
  }

  #family(name: IpFamily): FamilyHealth {
    let family = this.#families.get(name);
    if (!family) {
      family = {
        lastUpdated: undefined,
        queuedSince: undefined,
        unfinishedSince: undefined,
        hasSynced: false,
        heldUp: false,
      };
      this.#families.set(name, family);
    }
    return family;
  }
}

/** RFC 3339 as Go prints it with nanoseconds: zeros at the end of the fraction are left out. */
function formatTime(ms: number | undefined): string {
  return ms === undefined ? NEVER : new Date(ms).toISOString().replace(/\.?0*Z$/, 'Z');
}
