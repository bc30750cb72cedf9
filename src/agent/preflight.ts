import { existsSync, readFileSync } from 'node:fs';
import { type IpFamily, NodeplaneError } from '../core/index.ts';
import { readSysctl } from '../sys/index.ts';
import type { Logger } from './logger.ts';

/** linux/capability.h */
const CAP_NET_ADMIN = 12n;

/**
 * Looks at the machine before anything is changed.
 *
 * @param mayChangeRules whether this process has CAP_NET_ADMIN
 * @returns the families the machine has
 * @throws ERR_CONFIG without CAP_NET_ADMIN
 */
export function preflight(logger: Logger, mayChangeRules: boolean = hasNetAdmin()): IpFamily[] {
  if (!mayChangeRules) {
    throw new NodeplaneError(
      'ERR_CONFIG',
      'Cannot change packet rules without CAP_NET_ADMIN: run as root or grant the capability',
    );
  }
  warnAboutBridges(logger);
  const missing = whyNoIpv6();
  if (missing === undefined) return ['IPv4', 'IPv6'];
  logger.info({ reason: missing }, 'IPv6 is not served');
  return ['IPv4'];
}

/**
 * Two pods of one bridge talk without the bridge's packets meeting iptables, unless br_netfilter says otherwise: then the
 * answer of a Service's pod would reach a client on the same bridge untranslated, and be ignored.
 */
function warnAboutBridges(logger: Logger): void {
  let value: string;
  try {
    value = readSysctl('net/bridge/bridge-nf-call-iptables');
  } catch {
    value = 'not there';
  }
  if (value === '1') return;
  logger.warn(
    { 'net.bridge.bridge-nf-call-iptables': value },
    'Services may not work between pods on the same bridge: run "modprobe br_netfilter" and set the sysctl to 1',
  );
}

/** The conditions kube-proxy looks at. */
function whyNoIpv6(): string | undefined {
  if (!existsSync('/proc/net/if_inet6')) return 'the kernel has no IPv6';
  if (readSysctl('net/ipv6/conf/all/disable_ipv6') === '1') return 'net.ipv6.conf.all.disable_ipv6 is 1';
  return undefined;
}

function hasNetAdmin(): boolean {
  const effective = /^CapEff:\s*([0-9a-f]+)$/m.exec(readFileSync('/proc/self/status', 'utf8'))?.[1] ?? '0';
  return ((BigInt(`0x${effective}`) >> CAP_NET_ADMIN) & 1n) === 1n;
}
