import type { Clock, Timer } from '../../core/index.ts';
import type { EventRecorder, RecordedEvent } from '../../kube/index.ts';
import type { ProxyObserver, TroubleCause } from '../../proxy/index.ts';

/** A rollout takes an endpoint away and brings another: what lasts shorter than this nobody needs to be told. */
const LASTS_MS = 30_000;
/** Troubles that are watched; with more, the others are told by the metrics alone. */
const MOST = 2000;

const EVENTS: Readonly<Record<TroubleCause, Pick<RecordedEvent, 'type' | 'reason' | 'once'>>> = {
  'no-local-endpoints': { type: 'Warning', reason: 'NoLocalEndpoints', once: 'node' },
  'hints-ignored': { type: 'Normal', reason: 'TopologyHintsIgnored', once: 'cluster' },
};

/**
 * Puts the troubles of Service ports where their owners look, as Events on the Service: each cause once for each Service and
 * family, however many ports have it, until no port has it any more; and only what lasts.
 */
export function recordTroubles(recorder: Pick<EventRecorder, 'record'>, clock: Clock): ProxyObserver {
  /** By family, Service and cause: the ports that have it, and the wait until it is told. */
  const known = new Map<string, { readonly ports: Set<string>; text: string; timer: Timer }>();
  return (event) => {
    if (event.kind !== 'portTroubles') return;
    const { family, serviceName, portKey, troubles } = event;
    for (const cause of Object.keys(EVENTS) as TroubleCause[]) {
      const key = JSON.stringify([family, serviceName, cause]);
      const trouble = troubles.find((one) => one.cause === cause);
      const before = known.get(key);
      if (!trouble) {
        before?.ports.delete(portKey);
        if (before?.ports.size !== 0) continue;
        before.timer.cancel();
        known.delete(key);
        continue;
      }
      if (before) {
        before.ports.add(portKey);
        before.text = trouble.text;
        continue;
      }
      if (known.size >= MOST) continue;
      const tell = () => {
        const note = `In ${family}: ${known.get(key)?.text}`;
        const [namespace = '', name = ''] = serviceName.split('/');
        const told = { ...EVENTS[cause], action: 'ProgramService', note };
        recorder.record({ kind: 'Service', namespace, name }, told);
      };
      known.set(key, { ports: new Set([portKey]), text: trouble.text, timer: clock.setTimer(tell, LASTS_MS) });
    }
  };
}
