import { existsSync, readFileSync } from 'node:fs';
import { type IpFamily, NodeplaneError } from '../core/index.ts';
import {
  type DetectedVariant,
  detectVariant,
  type IptablesVariant,
  isIptablesPresent,
  programName,
} from '../proxy/rules/index.ts';
import { type Exec, readSysctl } from '../sys/index.ts';
import type { Logger } from './logger.ts';

/** linux/capability.h */
const CAP_NET_ADMIN = 12n;

/** What this machine can do, one entry for each family that can be served. */
export type UsableFamilies = ReadonlyMap<IpFamily, DetectedVariant>;

/**
 * Looks at the machine before anything is changed.
 *
 * @param mayChangeRules whether this process has CAP_NET_ADMIN
 * @throws ERR_CONFIG without CAP_NET_ADMIN; ERR_IPTABLES when no family has a working iptables
 */
export async function preflight(
  variant: IptablesVariant | 'auto',
  exec: Exec,
  logger: Logger,
  mayChangeRules: boolean = hasNetAdmin(),
): Promise<UsableFamilies> {
  if (!mayChangeRules) {
    throw new NodeplaneError(
      'ERR_CONFIG',
      'Cannot change packet rules without CAP_NET_ADMIN: run as root or grant the capability',
    );
  }
  warnAboutBridges(logger);
  const families = new Map<IpFamily, DetectedVariant>();
  const wanted = variant === 'auto' ? undefined : variant;
  const missing = whyNoIpv6();
  if (missing) logger.info({ reason: missing }, 'IPv6 is not served');
  let failure: unknown;
  for (const family of missing ? (['IPv4'] as const) : (['IPv4', 'IPv6'] as const)) {
    try {
      families.set(family, await usableVariant(family, exec, wanted));
    } catch (error) {
      failure ??= error;
      logger.warn({ err: error }, `${family} is not served: its iptables does not work here`);
    }
  }
  if (families.size === 0) throw failure;
  return families;
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

/** @throws ERR_IPTABLES when there is no program, or the kernel has no NAT for it */
async function usableVariant(
  family: IpFamily,
  exec: Exec,
  wanted: IptablesVariant | undefined,
): Promise<DetectedVariant> {
  const detected = await detectVariant(family, exec, wanted);
  if (await isIptablesPresent(family, detected.variant, exec)) return detected;
  const program = programName(family, detected.variant);
  const message = `Cannot use ${program}: it lists no chain POSTROUTING in table nat; the kernel may lack NAT for ${family}`;
  throw new NodeplaneError('ERR_IPTABLES', message, { facts: { family, variant: detected.variant } });
}

/** The conditions kube-proxy looks at. */
function whyNoIpv6(): string | undefined {
  if (!existsSync('/proc/net/if_inet6')) return 'the kernel has no IPv6';
  if (readSysctl('net/ipv6/conf/all/disable_ipv6') === '1') return 'net.ipv6.conf.all.disable_ipv6 is 1';
  return undefined;
}

/** Whether out-of-window packets are let through by conntrack, so that there is no INVALID state to drop. */
export function isConntrackLiberal(): boolean {
  try {
    return readSysctl('net/netfilter/nf_conntrack_tcp_be_liberal') !== '0';
  } catch {
    // nf_conntrack is not loaded yet; the kernel's default is 0.
    return false;
  }
}

function hasNetAdmin(): boolean {
  const effective = /^CapEff:\s*([0-9a-f]+)$/m.exec(readFileSync('/proc/self/status', 'utf8'))?.[1] ?? '0';
  return ((BigInt(`0x${effective}`) >> CAP_NET_ADMIN) & 1n) === 1n;
}
