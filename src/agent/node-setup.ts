import { writeFileSync } from 'node:fs';
import type { KubeProxyConfig } from '../config/index.ts';
import { attempt } from '../core/index.ts';
import { routeLocalnetOutcome } from '../preflight/index.ts';
import { readSysctl } from '../sys/index.ts';
import type { Logger } from './logger.ts';
import { applyConntrackSettings } from './services/conntrack/sysctls.ts';

/** What kube-proxy sets on the node at its start: the limits of connection tracking, and who dies last without memory. */
export function setUpNode(config: KubeProxyConfig, logger: Logger): void {
  const { written, warnings } = applyConntrackSettings(config.conntrack);
  if (written.length > 0) logger.info({ written }, 'Connection tracking set up');
  for (const warning of warnings) logger.warn(warning);
  // Not to be read, as on a kernel without IPv4: nothing to warn of.
  const localnet = routeLocalnetOutcome(attempt(() => readSysctl('net/ipv4/conf/all/route_localnet')));
  if (localnet.state === 'warning') logger.warn(`${localnet.message}. ${localnet.remedy}`);
  try {
    writeFileSync('/proc/self/oom_score_adj', String(config.oomScoreAdj));
  } catch (error) {
    // Lowering it needs CAP_SYS_RESOURCE; the proxy works without.
    logger.debug({ err: error, oomScoreAdj: config.oomScoreAdj }, 'The OOM score stays as it is');
  }
}
