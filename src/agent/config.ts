import { type Cidr, NodeplaneError, parseCidr } from '../core/index.ts';
import type { ProxyMode } from '../proxy/index.ts';
import type { IptablesVariant } from '../proxy/rules/index.ts';
import { type BindAddress, parseBindAddress } from './bind-address.ts';
import { parseDuration } from './duration.ts';
import { LOG_LEVELS, type LogLevel } from './logger.ts';

/** The agent's flags as text, named as on the command line in camel case. Missing means default. */
export interface AgentFlags {
  readonly manifests?: string;
  readonly nodeName?: string;
  readonly proxyMode?: string;
  readonly clusterCidr?: string;
  readonly nodeportAddresses?: string;
  readonly masqueradeAll?: boolean;
  readonly iptablesMasqueradeBit?: string;
  readonly iptablesSyncPeriod?: string;
  readonly iptablesMinSyncPeriod?: string;
  readonly iptablesVariant?: string;
  readonly healthzBindAddress?: string;
  readonly metricsBindAddress?: string;
  readonly logLevel?: string;
}

/** What the agent runs with: parsed, complete, checked. */
export interface AgentConfig {
  readonly manifests: string;
  readonly nodeName: string;
  readonly proxyMode: ProxyMode;
  /** Where pods have their addresses in the whole cluster; empty: the Node object's podCIDRs are used. */
  readonly clusterCidrs: readonly Cidr[];
  readonly nodePortAddresses: 'all' | 'primary' | readonly Cidr[];
  readonly masqueradeAll: boolean;
  readonly masqueradeBit: number;
  readonly syncPeriodMs: number;
  readonly minSyncPeriodMs: number;
  readonly iptablesVariant: IptablesVariant | 'auto';
  readonly healthzBindAddress: BindAddress;
  readonly metricsBindAddress: BindAddress;
  readonly logLevel: LogLevel;
}

/**
 * Checks all flags and reports every problem at once.
 *
 * @param hostname the machine's name, used when no node name is given; trimmed and lower-cased as kube-proxy does
 * @throws ERR_CONFIG listing every flag that cannot be used
 */
export function parseAgentConfig(flags: AgentFlags, hostname: string): AgentConfig {
  const problems: string[] = [];
  const check = <T>(flag: string, text: string, value: T | undefined, expected: string): T => {
    if (value === undefined) problems.push(`--${flag} "${text}": expected ${expected}`);
    return value as T;
  };

  if (!flags.manifests) problems.push('--manifests is missing: name the directory of Kubernetes manifests to read');
  const nodeName = (flags.nodeName ?? hostname).trim().toLowerCase();
  if (nodeName === '') problems.push('--node-name is empty: give the name of the Node object of this machine');

  const duration = (flag: string, text: string): number => {
    const ms = parseDuration(text);
    return check(flag, text, ms !== undefined && ms >= 0 ? ms : undefined, 'a duration such as 500ms, 30s or 1m30s');
  };
  const syncPeriodMs = duration('iptables-sync-period', flags.iptablesSyncPeriod ?? '30s');
  const minSyncPeriodMs = duration('iptables-min-sync-period', flags.iptablesMinSyncPeriod ?? '1s');
  if (syncPeriodMs === 0) problems.push('--iptables-sync-period must be greater than 0');
  if (minSyncPeriodMs > syncPeriodMs)
    problems.push('--iptables-min-sync-period must not exceed --iptables-sync-period');

  const bind = (flag: string, text: string, port: number): BindAddress =>
    check(flag, text, parseBindAddress(text, port), 'IP:port with a port from 1 to 65535');
  const bit = flags.iptablesMasqueradeBit ?? '14';
  const mode = flags.proxyMode ?? 'iptables';
  const variant = flags.iptablesVariant ?? 'auto';
  const level = flags.logLevel ?? 'info';

  const config: AgentConfig = {
    manifests: flags.manifests ?? '',
    nodeName,
    proxyMode: check('proxy-mode', mode, mode === 'iptables' ? mode : undefined, 'iptables'),
    clusterCidrs: parseClusterCidrs(flags.clusterCidr, problems),
    nodePortAddresses: parseNodePortAddresses(flags.nodeportAddresses, problems),
    masqueradeAll: flags.masqueradeAll ?? false,
    masqueradeBit: check(
      'iptables-masquerade-bit',
      bit,
      /^\d+$/.test(bit) && Number(bit) <= 31 ? Number(bit) : undefined,
      '0 to 31',
    ),
    syncPeriodMs,
    minSyncPeriodMs,
    iptablesVariant: check(
      'iptables-variant',
      variant,
      (['auto', 'legacy', 'nft'] as const).find((v) => v === variant),
      'auto, legacy or nft',
    ),
    healthzBindAddress: bind('healthz-bind-address', flags.healthzBindAddress ?? '0.0.0.0:10256', 10256),
    metricsBindAddress: bind('metrics-bind-address', flags.metricsBindAddress ?? '127.0.0.1:10249', 10249),
    logLevel: check(
      'log-level',
      level,
      LOG_LEVELS.find((l) => l === level),
      LOG_LEVELS.join(', '),
    ),
  };
  if (problems.length > 0) {
    throw new NodeplaneError('ERR_CONFIG', `Cannot start with these settings: ${problems.join('; ')}`);
  }
  return config;
}

/** One CIDR, or two of different families. */
function parseClusterCidrs(text: string | undefined, problems: string[]): readonly Cidr[] {
  const cidrs = parseCidrList('cluster-cidr', text, problems);
  if (cidrs.length > 2 || (cidrs.length === 2 && cidrs[0]!.address.family === cidrs[1]!.address.family)) {
    problems.push(`--cluster-cidr "${text}": expected one CIDR, or one IPv4 and one IPv6 CIDR`);
  }
  return cidrs;
}

function parseNodePortAddresses(text: string | undefined, problems: string[]): AgentConfig['nodePortAddresses'] {
  if (text === undefined || text === '') return 'all';
  if (text === 'primary') return 'primary';
  return parseCidrList('nodeport-addresses', text, problems);
}

function parseCidrList(flag: string, text: string | undefined, problems: string[]): Cidr[] {
  const cidrs: Cidr[] = [];
  for (const part of text === undefined ? [] : text.split(',')) {
    try {
      cidrs.push(parseCidr(part));
    } catch {
      problems.push(`--${flag} "${part}": expected a CIDR such as 10.244.0.0/16`);
    }
  }
  return cidrs;
}
