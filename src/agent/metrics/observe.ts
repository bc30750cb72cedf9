import { type Clock, driftText, type IpFamily } from '../../core/index.ts';
import type { EventRecorder, RecordedEvent, SourceProblem } from '../../kube/index.ts';
import type { Commit, ProxyObserver } from '../../proxy/index.ts';
import { type Logger, RepeatedNews } from '../logger.ts';

/** Writes what the proxy does into the log: one line for what an operator wants to see, the rest at debug level. */
export function logProxyEvents(logger: Logger, clock: Pick<Clock, 'now'>): ProxyObserver {
  const changed = new Map<IpFamily, RepeatedNews>();
  /** Families whose next sync repairs what was not told. */
  const quiet = new Set<IpFamily>();
  return (event) => {
    const { kind, family } = event;
    switch (kind) {
      case 'syncFinished': {
        const { full, seconds, commit, deltaSize, services = [] } = event;
        const figures = {
          family,
          full,
          ...(services.length > 0 && { services }),
          servicePorts: deltaSize,
          written: commit ? writtenText(commit) : 'nothing',
          seconds,
          kernelSeconds: commit?.kernelSeconds ?? 0,
        };
        const isQuiet = quiet.delete(family);
        if ((full && !isQuiet) || deltaSize > 0) logger.info(figures, 'Synced');
        else logger.debug(figures, 'Synced, nothing to write');
        break;
      }
      case 'syncFailed': {
        const { error, stage, retryInMs, full } = event;
        logger.error({ family, full, stage, retryInMs, err: error }, 'Sync failed; the rules before it stay in force');
        break;
      }
      case 'serviceProblem': {
        const { serviceName: service, problems } = event;
        if (problems.length > 0) logger.warn({ family, service, problems }, 'Parts of a Service cannot be used');
        else logger.info({ family, service }, 'The Service is in order again');
        break;
      }
      case 'leftOut': {
        for (const { name: servicePort, reason } of event.ports.slice(0, 20)) {
          logger.error(
            { family, servicePort, reason, count: event.ports.length },
            'The kernel refuses a Service port; all others are programmed',
          );
        }
        if (event.ports.length === 0) logger.info({ family }, 'No Service port is refused any more');
        break;
      }
      case 'driftFound': {
        const { drifts } = event;
        const news = changed.get(family) ?? new RepeatedNews(logger, clock);
        changed.set(family, news);
        const isTold = news.tell(
          'warn',
          { family, drifts: drifts.slice(0, 20).map(driftText), count: drifts.length },
          'Somebody changed our rules; repairing them (`nodeplane status` names who changed nf_tables last)',
        );
        if (!isTold) quiet.add(family);
        break;
      }
      case 'verifyFailed':
        logger.warn({ family, err: event.error }, 'The rules could not be compared with the kernel');
        break;
      case 'workFailed':
        logger.warn(
          { family, work: event.work, err: event.error },
          'Work beside the syncs failed; what was known stays in force',
        );
        break;
      default:
        logger.debug({ family, event: kind }, 'Proxy');
    }
  };
}

/** `87 of 88 rules, 5 of 5 elements`: what was written of what is there; `nothing` where all was as it is to be. */
function writtenText({ objects }: Commit): string {
  const kinds = Object.entries(objects).filter(([, { written }]) => written > 0);
  return kinds.map(([kind, { written, total }]) => `${written} of ${total} ${kind}`).join(', ') || 'nothing';
}

/** Puts what concerns a single Service where its owner looks: as Events on it, each cause once while it lasts. */
export function recordProxyEvents(recorder: Pick<EventRecorder, 'record'>): ProxyObserver {
  const record = (service: string, reason: string, note: string, once: RecordedEvent['once']): void => {
    const [, namespace = '', name = ''] = /^([^/]+)\/([^:]+)/.exec(service) ?? [];
    const event = { type: 'Warning', reason, action: 'ProgramService', note, once } as const;
    recorder.record({ kind: 'Service', namespace, name }, event);
  };
  /** By family and Service, what is wrong with it now. */
  const told = new Map<string, readonly string[]>();
  return (event) => {
    const { family } = event;
    if (event.kind === 'leftOut') {
      for (const { name: servicePort, reason } of event.ports) {
        record(servicePort, 'ServiceNotProgrammed', `${servicePort} is not programmed in ${family}: ${reason}`, 'node');
      }
    } else if (event.kind === 'serviceProblem') {
      const key = `${family} ${event.serviceName}`;
      const before = told.get(key) ?? [];
      // Those that were told and are still there say nothing new.
      const fresh = event.problems.filter((problem) => !before.includes(problem));
      if (event.problems.length > 0) told.set(key, event.problems);
      else told.delete(key);
      // Most are said by the objects, and so by each node.
      if (fresh.length > 0)
        record(event.serviceName, 'ServicePartlyUnusable', `In ${family}: ${fresh.join('; ')}`, 'cluster');
    }
  };
}

/** New problems of the source that are named at a time: ten thousand files can break at once. */
const MOST_PROBLEMS = 100;

/** Tells new problems of the source once, of very many the first and at the next change more of them, and when all are mended. */
export function logSourceProblems(logger: Logger): (problems: readonly SourceProblem[]) => void {
  let told: ReadonlySet<string> = new Set();
  return (problems) => {
    const now = new Map(problems.map((problem) => [JSON.stringify(problem), problem]));
    const fresh = [...now].filter(([identity]) => !told.has(identity));
    const named = fresh.slice(0, MOST_PROBLEMS);
    for (const [, { inForce, unread, others, ...what }] of named) {
      if (inForce) logger.warn(what, 'A manifest has what is probably not meant; what can be used is in force');
      else logger.error(what, 'An object cannot be read; its last good state stays in force');
    }
    const count = fresh.length - named.length;
    if (count > 0) logger.error({ count }, 'There are more such problems; they are named as these are mended');
    if (told.size > 0 && now.size === 0) logger.info('All objects are in order again');
    told = new Set([...told, ...named.map(([identity]) => identity)].filter((identity) => now.has(identity)));
  };
}
