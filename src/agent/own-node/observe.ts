import { Gauge, type Registry } from 'prom-client';
import type { AnnouncerEvent } from '../../kube/index.ts';
import type { Logger } from '../logger.ts';

/** Writes into the log what becomes of the annotations of our Node; a failure that repeats itself is said once. */
export function logAnnouncerEvents(logger: Logger): (event: AnnouncerEvent) => void {
  return (event) => {
    switch (event.kind) {
      case 'written':
        logger.info({ annotations: event.annotations, conditions: event.conditions }, 'Our Node object written');
        break;
      case 'failed': {
        const { error, retryInMs, isRepeated } = event;
        logger[isRepeated ? 'debug' : 'error'](
          { retryInMs, err: error },
          'Our Node object cannot be written; other nodes do not learn what its annotations would say',
        );
        break;
      }
      case 'noServer':
        logger.info('There is no API server: other nodes do not learn what the annotations of our Node would say');
    }
  };
}

/** Registers the metric of what our Node object does not say yet. */
export function observeUnwritten(registry: Registry, announcer: { readonly unwritten: number }): void {
  const unwritten: Gauge = new Gauge({
    name: 'nodeplane_node_unwritten_fields',
    help: 'Annotations and conditions of our Node object that are not as they are to be.',
    registers: [registry],
    collect() {
      unwritten.set(announcer.unwritten);
    },
  });
}
