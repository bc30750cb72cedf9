import type { EventRecorder } from '../../kube/index.ts';
import { ROUTE_LIMITS, type RouteObserver } from '../../routes/index.ts';

/**
 * Puts what keeps a Node's pods from being reached where its owner looks: as Events on that Node. So many have one at a time as
 * somebody could read; the log names all.
 */
export function recordRouteEvents(recorder: Pick<EventRecorder, 'record'>, nodeName: string): RouteObserver {
  const told = new Set<string>();
  return (event) => {
    if (event.kind !== 'leftOut') return;
    const { family, name, reason } = event;
    const key = `${family} ${name}`;
    if (reason === undefined) {
      told.delete(key);
      return;
    }
    if (!told.has(key) && told.size >= ROUTE_LIMITS.leftOutTold) return;
    told.add(key);
    const note = `Its pods cannot be reached from node ${nodeName} in ${family}: ${reason}`;
    const about = { kind: 'Node', name, namespace: '' } as const;
    const type = 'Warning';
    // What is wrong with a Node all others find at once.
    const shared = { once: 'cluster', cause: `${family}: ${reason}` } as const;
    recorder.record(about, { type, reason: 'PodsNotRouted', action: 'RouteToPods', note, ...shared });
  };
}
