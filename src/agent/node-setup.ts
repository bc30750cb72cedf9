import { writeFileSync } from 'node:fs';
import type { KubeProxyConfig } from '../config/index.ts';
import { readSysctl } from '../sys/index.ts';
import type { Logger } from './logger.ts';
import { applyConntrackSettings } from './services/conntrack/sysctls.ts';

/** What kube-proxy sets on the node at its start: the limits of connection tracking, and who dies last without memory. */
export function setUpNode(config: KubeProxyConfig, logger: Logger): void {
  const { written, warnings } = applyConntrackSettings(config.conntrack);
  if (written.length > 0) logger.info({ written }, 'Connection tracking set up');
  for (const warning of warnings) logger.warn(warning);
  if (isRouteLocalnetOn()) {
    // Not switched off: who did that, and what relies on it, is not to be seen.
    logger.warn(
      'net.ipv4.conf.all.route_localnet is on, perhaps since a kube-proxy ran here: neighbours reach what listens on 127.0.0.1 unless a rule drops it. Set it to 0 if nothing but NodePorts at 127.0.0.1 was meant; nodeplane does not need it',
    );
  }
  try {
    writeFileSync('/proc/self/oom_score_adj', String(config.oomScoreAdj));
  } catch (error) {
    // Lowering it needs CAP_SYS_RESOURCE; the proxy works without.
    logger.debug({ err: error, oomScoreAdj: config.oomScoreAdj }, 'The OOM score stays as it is');
  }
}

function isRouteLocalnetOn(): boolean {
  try {
    return readSysctl('net/ipv4/conf/all/route_localnet') !== '0';
  } catch {
    // Not to be read, as on a kernel without IPv4.
    return false;
  }
}
