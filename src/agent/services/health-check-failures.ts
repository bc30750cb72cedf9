import type { EventRecorder } from '../../kube/index.ts';
import type { Logger } from '../logger.ts';
import type { HealthCheckPortsOptions } from './health-check-ports.ts';

/**
 * Tells of health check ports that could not be opened: in the log and, as kube-proxy does, as an Event on the Service,
 * which is where somebody looks whose load balancer finds no node.
 *
 * @param recorder undefined without an API server
 */
export function reportHealthCheckFailures(
  logger: Logger,
  recorder: Pick<EventRecorder, 'record'> | undefined,
): HealthCheckPortsOptions['failed'] {
  return ({ serviceName, port }, error) => {
    logger.error({ service: serviceName, port, err: error }, 'A health check port cannot be opened');
    const [namespace = '', name = ''] = serviceName.split('/');
    recorder?.record(
      { kind: 'Service', namespace, name },
      {
        type: 'Warning',
        reason: 'FailedToStartServiceHealthcheck',
        action: 'Listen',
        note: error.message,
        once: 'node',
      },
    );
  };
}
