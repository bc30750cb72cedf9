import type { Clock, Steps } from '../../../core/index.ts';
import { readSysctl } from '../../../sys/index.ts';
import type { RuleChange } from '../../evidence/index.ts';
import type { PodStanding } from '../../part.ts';
import type { OwnCommands } from '../own-commands.ts';
import { STATUS_LIMITS, STATUS_SCHEMA, type Status } from '../status.ts';
import type { AddressFacts, PeerFamily, StatusFacts, WatchAge } from './facts.ts';
import { peerFacts } from './peer-facts.ts';
import { answerAll } from './questions.ts';
import type { StatusRecorder } from './recorder.ts';
import { indexServices, type ServiceView } from './service-index.ts';
import { type ExplainingFamily, serviceReport } from './service-report.ts';

/** What a status is collected from. Functions are asked for each status. */
export interface StatusSources {
  readonly node: string;
  readonly version: string;
  readonly mode: string;
  readonly clock: Clock;
  readonly recorder: StatusRecorder;
  /** Empty until the proxy has begun. */
  readonly families: () => readonly Omit<ExplainingFamily, 'record'>[];
  readonly healthy: () => boolean;
  /** See `StatusFacts`. */
  readonly standsByFor: () => string;
  /** Undefined: the objects come from a directory of manifests. */
  readonly api: (() => { readonly server: string; readonly watches: readonly WatchAge[] }) | undefined;
  /** The directory of manifests; empty: none. */
  readonly manifests: string;
  /** Undefined: without --routes. */
  readonly routes: { readonly mode: string; readonly standing: () => readonly PeerFamily[] } | undefined;
  /** What of the routes of an agent with --routes is there without it; empty: nothing. */
  readonly leftRoutes: () => string;
  /** See `StatusFacts`. */
  readonly leftNetwork: () => string;
  /** Undefined: without --cni and --routes. */
  readonly addresses: (() => AddressFacts) | undefined;
  readonly pods: () => PodStanding;
  /** What others changed in nf_tables, the newest last. */
  readonly ruleChanges: () => readonly RuleChange[];
  readonly ports: StatusFacts['ports'];
  readonly commands: OwnCommands;
  /** When the agent began, by the clock. */
  readonly began: number;
}

/** Collects how the node stands now, in steps: 10,000 Services are looked through for it. */
export function* collectStatus(sources: StatusSources, view: ServiceView): Steps<Status> {
  const { node, version, mode, clock, recorder, routes, began } = sources;
  const { families: records } = recorder;
  const families = sources
    .families()
    .map((one) => ({ ...one, record: records.find(({ family }) => family === one.family) }));
  const index = yield* indexServices(families, view);
  const peers = routes && (yield* peerFacts(routes.standing(), clock.wallTime()));
  const addresses = sources.addresses?.();
  const now = clock.now();
  const age = (at: number) => Math.max(0, now - at) / 1000;
  const timeOf = (at: number) => new Date(clock.wallTime() - (now - at)).toISOString();
  const newest = recorder.changes.at(-1);
  const facts: StatusFacts = {
    node,
    version,
    mode,
    upSeconds: age(began),
    memory: process.memoryUsage.rss(),
    healthy: sources.healthy(),
    standsByFor: sources.standsByFor(),
    age,
    families: records,
    api: sources.api?.(),
    manifests: sources.manifests,
    objectProblems: recorder.objectProblems,
    services: index,
    conntrack: readConntrack(),
    peers,
    leftRoutes: sources.leftRoutes(),
    leftNetwork: sources.leftNetwork(),
    addresses,
    pods: sources.pods(),
    changes: { count: recorder.changeCount, last: newest && age(newest.at), what: newest?.what ?? '' },
    ports: sources.ports,
    commands: sources.commands,
  };
  const { questions, problems, problemsTotal } = answerAll(facts);
  yield;
  const { names, counts, matched, page, pages } = index;
  const services = [];
  const endpoints = matched === 1 ? STATUS_LIMITS.endpointsOfOne : STATUS_LIMITS.endpointsInList;
  for (const name of names) {
    const changed = recorder.lastChangeOf(name);
    const lastChange = changed === undefined ? null : timeOf(changed);
    services.push(yield* serviceReport(name, { families, lastChange, endpoints }));
    yield;
  }
  return {
    schema: STATUS_SCHEMA,
    node,
    version,
    mode,
    takenAt: new Date(clock.wallTime()).toISOString(),
    questions,
    problems: problems.slice(0, STATUS_LIMITS.problems),
    problemsTotal,
    syncs: records.map(({ family, syncs }) => ({
      family,
      syncs: syncs.map(({ at, ...sync }) => ({ at: timeOf(at), ...sync })),
    })),
    services: { total: counts.total, query: view.query, matched, page, pages, services },
    peers: routes && peers ? { mode: routes.mode, total: peers.total, peers: peers.peers } : null,
    addresses: addresses?.ranges ?? null,
    drift: records.flatMap(({ drift }) => drift),
    changes: recorder.changes.map(({ at, ...change }) => ({ at: timeOf(at), ...change })).reverse(),
    ruleChanges: sources
      .ruleChanges()
      .map(({ at, what, count, program, pid }) => ({ at: timeOf(at), what, count, program, pid }))
      .reverse()
      .slice(0, STATUS_LIMITS.ruleChanges),
  };
}

/** Undefined where connection tracking is not there (yet). */
function readConntrack(): StatusFacts['conntrack'] {
  try {
    const [count, max] = ['count', 'max'].map((name) => Number(readSysctl(`net/netfilter/nf_conntrack_${name}`)));
    return { count: count!, max: max! };
  } catch {
    return undefined;
  }
}
