import type { IpFamily } from '../core/index.ts';
import { bridgeNfOutcome, needNetAdmin, whyNoIpv6 } from '../preflight/index.ts';
import { readSysctl } from '../sys/index.ts';
import type { Logger } from './logger.ts';

/**
 * Looks at the machine before anything is changed: as much as the agent must know at its start. `nodeplane preflight` looks at
 * all the rest.
 *
 * @param mayChangeRules whether this process has CAP_NET_ADMIN. @default it looks
 * @returns the families the machine has
 * @throws ERR_CONFIG without CAP_NET_ADMIN
 */
export function preflight(logger: Logger, mayChangeRules?: boolean): IpFamily[] {
  needNetAdmin(mayChangeRules);
  warnAboutBridges(logger);
  const missing = whyNoIpv6();
  if (missing === undefined) return ['IPv4', 'IPv6'];
  logger.info({ reason: missing }, 'IPv6 is not served');
  return ['IPv4'];
}

function warnAboutBridges(logger: Logger): void {
  let value: string | undefined;
  try {
    value = readSysctl('net/bridge/bridge-nf-call-iptables');
  } catch {
    // br_netfilter is not loaded.
  }
  const { state, message, remedy } = bridgeNfOutcome(value);
  if (state === 'ok') return;
  logger.warn({ 'net.bridge.bridge-nf-call-iptables': value ?? 'not there' }, `${message}: ${remedy}`);
}
