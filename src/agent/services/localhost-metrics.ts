import { Gauge, type Registry } from 'prom-client';
import { type Clock, errorText, type IpFamily } from '../../core/index.ts';
import type { LocalhostState } from '../../proxy/localhost/index.ts';
import { type Logger, RepeatedNews } from '../logger.ts';

/** Counts the NodePorts at localhost, and logs once about each reason for which they do not answer. */
export function localhostMetrics(
  registry: Registry,
  logger: Logger,
  clock: Pick<Clock, 'now'>,
): (state: LocalhostState) => void {
  const served = new Gauge({
    name: 'nodeplane_localhost_nodeports',
    help: 'NodePorts that answer processes of this node at 127.0.0.1 or ::1; 0 while the kernel refuses their rules.',
    labelNames: ['ip_family'],
    registers: [registry],
  });
  const reasons = new Map<IpFamily, string>();
  const repairs = new RepeatedNews(logger, clock);
  return ({ family, served: count, error, repaired }) => {
    served.set({ ip_family: family }, count);
    if (error === undefined) {
      reasons.delete(family);
      if (repaired)
        repairs.tell('warn', { family }, 'The rules of NodePorts at localhost were changed by others and are repaired');
      return;
    }
    const reason = errorText(error);
    if (reasons.get(family) === reason) return;
    reasons.set(family, reason);
    logger.error(
      { family, err: error },
      'NodePorts at localhost are not as they should be, for which the kernel needs nf_tables; every look at the kernel tries again',
    );
  };
}
