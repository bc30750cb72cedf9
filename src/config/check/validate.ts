import { isAbsolute } from 'node:path';
import { sectionsOf } from '../file/fold-modes.ts';
import { IPTABLES_VARIANTS, type KubeProxyConfig, MODES } from '../file/kube-proxy-config.ts';
import type { Configuration } from '../file/schema.ts';
import { type ConfigProblem, Problems, shown } from '../problems.ts';
import { KUBERNETES_VERSION } from '../program.ts';
import { resolveFeatureGates } from '../values/feature-gates.ts';
import {
  readCidrs,
  readDetectLocal,
  readNodeIp,
  readNodePortAddresses,
  readServerAddress,
} from './validate-addresses.ts';
import { readCni } from './validate-cni.ts';
import { readLogging } from './validate-logging.ts';
import { readPools } from './validate-pools.ts';
import { readRoutes } from './validate-routes.ts';

const HOUR_MS = 3_600_000;

/** Modules ip_vs_<name> of Linux 6.18 (net/netfilter/ipvs/Kconfig); flags such as `,sh-port` may follow. */
const SCHEDULERS: ReadonlySet<string> = new Set('rr wrr lc wlc fo ovf lblc lblcr dh sh mh sed nq twos'.split(' '));

/** Label values of Kubernetes; the empty one stands for "no such label" here. */
const LABEL_VALUE = /^([A-Za-z0-9]([-\w.]{0,61}[A-Za-z0-9])?)?$/;

/** What runs the process and is no part of the file. */
export interface ProcessSettings {
  readonly nodeName: string;
  readonly master: string;
  readonly reportedVersion: string;
}

/**
 * Checks the configuration in effect and turns its texts into values.
 *
 * @returns the configuration, or everything that is wrong with it
 */
export function validate(
  effective: Configuration,
  settings: ProcessSettings,
): { readonly config: KubeProxyConfig } | { readonly problems: readonly ConfigProblem[] } {
  const problems = new Problems();
  const config = readConfiguration(effective, settings, problems);
  return problems.found.length > 0 ? { problems: problems.found } : { config };
}

function readConfiguration(effective: Configuration, settings: ProcessSettings, problems: Problems): KubeProxyConfig {
  const mode = problems.oneOf('mode', effective.mode, MODES);
  const featureGates = resolveFeatureGates(effective.featureGates, (message) => problems.add('featureGates', message));
  const detectLocal = readDetectLocal(effective, problems);
  checkHiddenMetrics(effective.showHiddenMetricsForVersion, problems);
  return {
    nodeName: settings.nodeName,
    reportedVersion: settings.reportedVersion,
    apiServer: readApiServer(effective, settings.master, problems),
    nodeIp: readNodeIp(effective.bindAddress, problems),
    healthzBindAddress:
      effective.healthzBindAddress === ''
        ? undefined
        : readServerAddress('healthzBindAddress', effective.healthzBindAddress, problems),
    metricsBindAddress: readServerAddress('metricsBindAddress', effective.metricsBindAddress, problems),
    statusBindAddress: readStatusAddress(effective, problems),
    bindAddressHardFail: effective.bindAddressHardFail,
    profiling: effective.enableProfiling,
    featureGates,
    mode,
    ...readModeSettings(effective, problems),
    localhostNodePorts: readLocalhostNodePorts(effective),
    ipvs: readIpvs(effective, problems),
    detectLocal,
    nodePortAddresses: readNodePortAddresses(effective.nodePortAddresses, problems),
    oomScoreAdj: problems.inRange('oomScoreAdj', effective.oomScoreAdj, -1000, 1000),
    conntrack: readConntrack(effective, problems),
    logging: readLogging(effective, featureGates, problems),
    ...readOwn(effective, problems),
    effective,
  };
}

function readStatusAddress({ nodeplane }: Configuration, problems: Problems): KubeProxyConfig['statusBindAddress'] {
  const { statusBindAddress: text } = nodeplane;
  return text === '' ? undefined : readServerAddress('nodeplane.statusBindAddress', text, problems);
}

/** kube-proxy has such NodePorts in iptables mode alone. */
function readLocalhostNodePorts({ mode, iptables, nodeplane }: Configuration): KubeProxyConfig['localhostNodePorts'] {
  if (nodeplane.localhostNodePorts) return 'always';
  return mode === 'iptables' && iptables.localhostNodePorts ? 'as-kube-proxy' : 'never';
}

function readApiServer(effective: Configuration, master: string, problems: Problems): KubeProxyConfig['apiServer'] {
  const { kubeconfig, qps, burst, contentType, acceptContentTypes } = effective.clientConnection;
  problems.positive('configSyncPeriod', effective.configSyncPeriod);
  return {
    master,
    kubeconfig,
    qps,
    burst: problems.notNegative('clientConnection.burst', burst),
    // As in client-go: what is accepted is what is sent, unless it is said.
    protobuf: (acceptContentTypes || contentType).includes('application/vnd.kubernetes.protobuf'),
  };
}

/** Only the previous minor release is accepted, so that nobody forgets this setting for long. */
function checkHiddenMetrics(release: string, problems: Problems): void {
  const [, major, minor] = /^v(\d+)\.(\d+)/.exec(KUBERNETES_VERSION)!;
  const previous = `${major}.${Number(minor) - 1}`;
  if (release !== '' && release !== previous) {
    problems.add(
      'showHiddenMetricsForVersion',
      `"${release}" is not the previous minor release, "${previous}": give that, or leave it empty`,
    );
  }
}

/** The settings that each mode has in a section of its own. */
function readModeSettings(
  effective: Configuration,
  problems: Problems,
): Pick<KubeProxyConfig, 'masqueradeBit' | 'masqueradeAll' | 'syncPeriodMs' | 'minSyncPeriodMs'> {
  const { periods, masquerading } = sectionsOf(effective.mode);
  const { syncPeriod, minSyncPeriod } = effective[periods];
  problems.positive(`${periods}.syncPeriod`, syncPeriod);
  problems.notNegative(`${periods}.minSyncPeriod`, minSyncPeriod);
  const minimum = shown(`${periods}.minSyncPeriod`, minSyncPeriod);
  if (minSyncPeriod > syncPeriod) {
    const longest = shown(`${periods}.syncPeriod`, syncPeriod);
    problems.add(`${periods}.minSyncPeriod`, `${minimum} must not exceed syncPeriod: give ${longest} or less`);
  }
  // A sync is due after an hour at the latest. kube-proxy takes a longer minimum and crashes.
  if (minSyncPeriod > HOUR_MS) problems.add(`${periods}.minSyncPeriod`, `${minimum} must not exceed 1h`);
  problems.inRange('iptables.masqueradeBit', effective.iptables.masqueradeBit, 0, 31);
  const { masqueradeBit, masqueradeAll } = effective[masquerading];
  if (masquerading === 'nftables') problems.inRange('nftables.masqueradeBit', masqueradeBit, 0, 31);
  return { masqueradeBit, masqueradeAll, syncPeriodMs: syncPeriod, minSyncPeriodMs: minSyncPeriod };
}

/** Nothing here is checked in the other modes, in which it has no effect. */
function readIpvs(effective: Configuration, allProblems: Problems): KubeProxyConfig['ipvs'] {
  const problems = effective.mode === 'ipvs' ? allProblems : new Problems();
  const { scheduler, strictARP, tcpTimeout, tcpFinTimeout, udpTimeout, excludeCIDRs } = effective.ipvs;
  if (scheduler !== '' && !SCHEDULERS.has(scheduler.split(',')[0]!)) {
    const known = [...SCHEDULERS].map((name) => `"${name}"`).join(', ');
    problems.add('ipvs.scheduler', `"${scheduler}" is no scheduler of the kernel: give one of ${known}`);
  }
  return {
    scheduler: scheduler || 'rr',
    strictArp: strictARP,
    tcpTimeoutMs: problems.notNegative('ipvs.tcpTimeout', tcpTimeout),
    tcpFinTimeoutMs: problems.notNegative('ipvs.tcpFinTimeout', tcpFinTimeout),
    udpTimeoutMs: problems.notNegative('ipvs.udpTimeout', udpTimeout),
    excludeCidrs: readCidrs('ipvs.excludeCIDRs', excludeCIDRs ?? [], problems),
  };
}

function readConntrack(effective: Configuration, problems: Problems): KubeProxyConfig['conntrack'] {
  const { tcpBeLiberal, ...limits } = effective.conntrack;
  const limit = (name: keyof typeof limits): number => problems.notNegative(`conntrack.${name}`, limits[name]);
  return {
    maxPerCore: limit('maxPerCore'),
    min: limit('min'),
    tcpEstablishedTimeoutMs: limit('tcpEstablishedTimeout'),
    tcpCloseWaitTimeoutMs: limit('tcpCloseWaitTimeout'),
    tcpBeLiberal,
    udpTimeoutMs: limit('udpTimeout'),
    udpStreamTimeoutMs: limit('udpStreamTimeout'),
  };
}

type OwnSettings =
  | 'manifests'
  | 'iptablesVariant'
  | 'serviceProxyName'
  | 'serviceTrafficMetrics'
  | 'externalIpCidrs'
  | 'procSysRoot'
  | 'configChangeSpreadMs'
  | 'agentLockDir'
  | 'migrationAnnotation'
  | 'cni'
  | 'pools'
  | 'routes';

function readOwn(effective: Configuration, problems: Problems): Pick<KubeProxyConfig, OwnSettings> {
  const own = effective.nodeplane;
  const { manifests, iptablesVariant, serviceProxyName, serviceTrafficMetrics, externalIPCIDRs } = own;
  const { procSysRoot, agentLockDir } = own;
  effective.nodeplane;
  if (!LABEL_VALUE.test(serviceProxyName)) {
    problems.add(
      'nodeplane.serviceProxyName',
      `"${serviceProxyName}" cannot be the value of a label: give up to 63 letters, digits, "-", "_" and ".", the first and last no sign`,
    );
  }
  if (!isAbsolute(procSysRoot)) problems.add('nodeplane.procSysRoot', `"${procSysRoot}" is no absolute path`);
  if (agentLockDir !== '' && !isAbsolute(agentLockDir)) {
    problems.add('nodeplane.agentLockDir', `"${agentLockDir}" is no absolute path: give one, or "" for no lock`);
  }
  const variant = problems.oneOf('nodeplane.iptablesVariant', iptablesVariant, IPTABLES_VARIANTS);
  return {
    manifests,
    iptablesVariant: variant,
    serviceProxyName,
    serviceTrafficMetrics,
    externalIpCidrs: readCidrs('nodeplane.externalIPCIDRs', externalIPCIDRs ?? [], problems),
    procSysRoot,
    configChangeSpreadMs: problems.notNegative('nodeplane.configChangeSpread', effective.nodeplane.configChangeSpread),
    agentLockDir,
    migrationAnnotation: own.migrationAnnotation,
    cni: readCni(effective.nodeplane.cni, problems),
    pools: readPools(effective, problems),
    routes: readRoutes(effective.nodeplane.routes, effective.clusterCIDR, problems),
  };
}
