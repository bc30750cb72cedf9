import { NODE_PATHS } from '../../core/index.ts';
import { gateMap, textList, verbosityPatterns } from '../values/list-types.ts';
import { flushFrequency, quantity } from '../values/logging-types.ts';
import { boolean, duration, float, int32, text, uint32 } from '../values/scalar-types.ts';
import type { ValueType } from '../values/value-type.ts';

export const API_VERSION = 'kubeproxy.config.k8s.io/v1alpha1';
export const KIND = 'KubeProxyConfiguration';

/** One field of the configuration file. */
export interface Field<T> {
  readonly type: ValueType<T>;
  readonly fallback: T;
  /**
   * Whether the zero value in the file means "not set" too. It does where kube-proxy's own struct has a plain value; where
   * it has a pointer, 0 and false are values like any other.
   */
  readonly zeroIsUnset: boolean;
  /** Whether the zero value is left out when the configuration is written. */
  readonly omitZero: boolean;
}

/** A section of the file. */
export interface Section {
  readonly [name: string]: Field<unknown> | Section;
}

/** Whether an entry of the schema is a field, and no section of more of them. */
export function isField(entry: Field<unknown> | Section): entry is Field<unknown> {
  return typeof (entry as Field<unknown>).zeroIsUnset === 'boolean';
}

const plain = <T>(type: ValueType<T>): Field<T> => field(type, type.zero);
const defaulted = <T>(type: ValueType<T>, fallback: T): Field<T> => field(type, fallback, { zeroIsUnset: true });
const pointer = <T>(type: ValueType<T>, fallback: T): Field<T> => field(type, fallback);
const omittable = <T>(type: ValueType<T>): Field<T> => field(type, type.zero, { omitZero: true });

function field<T>(type: ValueType<T>, fallback: T, options: Partial<Field<T>> = {}): Field<T> {
  return { type, fallback, zeroIsUnset: false, omitZero: false, ...options };
}

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;

/**
 * Every field of KubeProxyConfiguration v1alpha1 (Kubernetes 1.36) with type and default, in the order in which kube-proxy
 * serves them at /configz. Decoding, defaults, flags and both ways of writing follow this table.
 *
 * The two server addresses have no default here: theirs depends on `bindAddress`.
 */
export const KUBE_PROXY_FIELDS = {
  featureGates: omittable(gateMap),
  clientConnection: {
    kubeconfig: plain(text),
    acceptContentTypes: plain(text),
    contentType: defaulted(text, 'application/vnd.kubernetes.protobuf'),
    qps: defaulted(float, 5),
    burst: defaulted(int32, 10),
  },
  logging: {
    format: defaulted(text, 'text'),
    flushFrequency: defaulted(flushFrequency, { ms: 5 * SECOND, writtenAs: 'duration' }),
    verbosity: plain(uint32),
    vmodule: omittable(verbosityPatterns),
    options: {
      text: { splitStream: omittable(boolean), infoBufferSize: plain(quantity) },
      json: { splitStream: omittable(boolean), infoBufferSize: plain(quantity) },
    },
  },
  hostnameOverride: plain(text),
  bindAddress: defaulted(text, '0.0.0.0'),
  healthzBindAddress: plain(text),
  metricsBindAddress: plain(text),
  bindAddressHardFail: plain(boolean),
  enableProfiling: plain(boolean),
  showHiddenMetricsForVersion: plain(text),
  mode: plain(text),
  iptables: {
    masqueradeBit: pointer(int32, 14),
    masqueradeAll: plain(boolean),
    localhostNodePorts: pointer(boolean, true),
    syncPeriod: defaulted(duration, 30 * SECOND),
    minSyncPeriod: defaulted(duration, SECOND),
  },
  ipvs: {
    syncPeriod: defaulted(duration, 30 * SECOND),
    minSyncPeriod: plain(duration),
    scheduler: plain(text),
    excludeCIDRs: plain(textList),
    strictARP: plain(boolean),
    tcpTimeout: plain(duration),
    tcpFinTimeout: plain(duration),
    udpTimeout: plain(duration),
  },
  nftables: {
    masqueradeBit: pointer(int32, 14),
    masqueradeAll: plain(boolean),
    syncPeriod: defaulted(duration, 30 * SECOND),
    minSyncPeriod: defaulted(duration, SECOND),
  },
  winkernel: {
    networkName: plain(text),
    sourceVip: plain(text),
    enableDSR: plain(boolean),
    rootHnsEndpointName: plain(text),
    forwardHealthCheckVip: plain(boolean),
  },
  detectLocalMode: plain(text),
  detectLocal: { bridgeInterface: plain(text), interfaceNamePrefix: plain(text) },
  clusterCIDR: plain(text),
  nodePortAddresses: plain(textList),
  oomScoreAdj: pointer(int32, -999),
  conntrack: {
    maxPerCore: pointer(int32, 32 * 1024),
    min: pointer(int32, 128 * 1024),
    tcpEstablishedTimeout: pointer(duration, 24 * HOUR),
    tcpCloseWaitTimeout: pointer(duration, HOUR),
    tcpBeLiberal: plain(boolean),
    udpTimeout: plain(duration),
    udpStreamTimeout: plain(duration),
  },
  configSyncPeriod: defaulted(duration, 15 * MINUTE),
  portRange: plain(text),
  windowsRunAsService: omittable(boolean),
} as const satisfies Section;

/** What `nodeplane agent` understands beyond kube-proxy; to kube-proxy's own command line this section is unknown. */
export const ALL_FIELDS = {
  ...KUBE_PROXY_FIELDS,
  nodeplane: {
    manifests: plain(text),
    iptablesVariant: defaulted(text, 'auto'),
    serviceProxyName: plain(text),
    logLevel: plain(text),
    serviceTrafficMetrics: plain(uint32),
    externalIPCIDRs: plain(textList),
    localhostNodePorts: plain(boolean),
    statusBindAddress: plain(text),
    procSysRoot: defaulted(text, '/proc/sys'),
    configChangeSpread: pointer(duration, MINUTE),
    agentLockDir: pointer(text, NODE_PATHS.runDir),
    migrationAnnotation: plain(boolean),
    routes: {
      mode: defaulted(text, 'none'),
      tunnel: defaulted(text, 'vxlan'),
      vni: pointer(uint32, 1),
      port: defaulted(uint32, 8472),
      mtu: plain(uint32),
      interface: plain(text),
      wireguard: {
        port: defaulted(uint32, 51820),
        keepalive: plain(uint32),
        keyFile: defaulted(text, NODE_PATHS.wireguardKey),
      },
      masquerade: {
        cidrs: pointer(textList, ['ipv4', 'ipv6']),
        nonMasqueradeCIDRs: plain(textList),
        randomFully: pointer(boolean, true),
      },
      clearNetworkUnavailable: pointer(boolean, true),
      flannel: { annotations: plain(boolean), netConf: plain(text), subnetFile: plain(text) },
    },
    pools: {
      podCIDRsFrom: defaulted(text, 'node'),
      cidrs: plain(textList),
      blockSize: defaulted(uint32, 26),
      blockSizeIPv6: defaulted(uint32, 122),
      reclaimAfter: defaulted(duration, 15 * MINUTE),
    },
    cni: {
      enabled: plain(boolean),
      binDir: defaulted(text, NODE_PATHS.cniBinDir),
      confDir: defaulted(text, NODE_PATHS.cniConfDir),
      conflist: plain(text),
      podCIDRs: plain(textList),
      dataDir: defaulted(text, NODE_PATHS.cniDataDir),
      socket: defaulted(text, NODE_PATHS.cniSocket),
      spoolDir: defaulted(text, NODE_PATHS.cniSpoolDir),
      macvlan: {
        namespaces: plain(textList),
        masters: defaulted(textList, ['default']),
        mode: defaulted(text, 'private'),
        ipam: plain(text),
        routes: plain(textList),
      },
    },
  },
} as const satisfies Section;

type Values<S> = { readonly [K in keyof S]: S[K] extends Field<infer T> ? T : Values<S[K]> };

/** A configuration with a value in every field, in the shape of the file. */
export type Configuration = Values<typeof ALL_FIELDS>;

type Paths<S> = {
  [K in keyof S & string]: S[K] extends { readonly zeroIsUnset: boolean } ? K : `${K}.${Paths<S[K]>}`;
}[keyof S & string];

/** Where a field is, as users write it: `iptables.masqueradeBit`. */
export type FieldPath = Paths<typeof ALL_FIELDS>;

type At<V, P extends string> = P extends `${infer Head}.${infer Rest}`
  ? Head extends keyof V
    ? At<V[Head], Rest>
    : never
  : P extends keyof V
    ? V[P]
    : never;

/** The type of the value at a path. */
export type ValueAt<P extends FieldPath> = At<Configuration, P>;
