import { describe, expect, it } from 'vitest';
import { complete } from '../complete.ts';
import { decodeConfigFile } from '../file/config-file.ts';
import { withValue } from '../file/field-path.ts';
import type { FieldPath, ValueAt } from '../file/schema.ts';
import { validate } from './validate.ts';

const HEAD = 'apiVersion: kubeproxy.config.k8s.io/v1alpha1\nkind: KubeProxyConfiguration\n';
const SETTINGS = { nodeName: 'n1', master: '', reportedVersion: 'v1.36.2' };

/** The problems with the defaults of a mode after the fields of `body` are set in the file and `changes` made behind the defaults. */
function problemsWith(body: string, ...changes: [FieldPath, unknown][]): string[] {
  let effective = complete({}, decodeConfigFile(HEAD + body, 'nodeplane agent').given);
  for (const [path, value] of changes) effective = withValue(effective, path, value as ValueAt<FieldPath>);
  const result = validate(effective, SETTINGS);
  return 'problems' in result ? result.problems.map(({ path, message }) => `${path}: ${message}`) : [];
}

describe('validate refuses', () => {
  it.each([
    ['featureGates: {Nope: true}', 'featureGates: unrecognized feature gate "Nope": leave it out'],
    [
      'featureGates: {NFTablesProxyMode: false}',
      'featureGates: cannot set feature gate "NFTablesProxyMode" to false, it is locked to true: leave it out',
    ],
    ['iptables: {masqueradeBit: 32}', 'iptables.masqueradeBit: 32 is not within 0 and 31'],
    ['mode: ipvs\niptables: {masqueradeBit: -1}', 'iptables.masqueradeBit: -1 is not within 0 and 31'],
    ['mode: nftables\niptables: {masqueradeBit: 32}', 'iptables.masqueradeBit: 32 is not within 0 and 31'],
    ['mode: nftables\nnftables: {masqueradeBit: 32}', 'nftables.masqueradeBit: 32 is not within 0 and 31'],
    ['mode: ipvs\nipvs: {tcpTimeout: -1s}', 'ipvs.tcpTimeout: -1s must not be negative: give 0s or more'],
    ['mode: ipvs\nipvs: {tcpFinTimeout: -1s}', 'ipvs.tcpFinTimeout: -1s must not be negative: give 0s or more'],
    ['mode: ipvs\nipvs: {udpTimeout: -1ns}', 'ipvs.udpTimeout: -1ns must not be negative: give 0s or more'],
    [
      'mode: ipvs\nipvs: {excludeCIDRs: [10.0.0.1]}',
      'ipvs.excludeCIDRs: "10.0.0.1" is not a CIDR such as 10.244.0.0/16',
    ],
    ['conntrack: {maxPerCore: -1}', 'conntrack.maxPerCore: -1 must not be negative: give 0 or more'],
    ['conntrack: {min: -1}', 'conntrack.min: -1 must not be negative: give 0 or more'],
    [
      'conntrack: {tcpEstablishedTimeout: -1s}',
      'conntrack.tcpEstablishedTimeout: -1s must not be negative: give 0s or more',
    ],
    [
      'conntrack: {tcpCloseWaitTimeout: -1s}',
      'conntrack.tcpCloseWaitTimeout: -1s must not be negative: give 0s or more',
    ],
    ['conntrack: {udpTimeout: -1s}', 'conntrack.udpTimeout: -1s must not be negative: give 0s or more'],
    ['conntrack: {udpStreamTimeout: -1s}', 'conntrack.udpStreamTimeout: -1s must not be negative: give 0s or more'],
    ['oomScoreAdj: 1001', 'oomScoreAdj: 1001 is not within -1000 and 1000'],
    ['oomScoreAdj: -1001', 'oomScoreAdj: -1001 is not within -1000 and 1000'],
    ['mode: userspace', 'mode: "userspace" is none of "iptables", "ipvs", "nftables"'],
    ['mode: IPVS', 'mode: "IPVS" is none of "iptables", "ipvs", "nftables"'],
    ['clientConnection: {burst: -1}', 'clientConnection.burst: -1 must not be negative: give 0 or more'],
    ['configSyncPeriod: -1s', 'configSyncPeriod: -1s must be greater than 0: 15m0s is the default'],
    ['iptables: {minSyncPeriod: -1s}', 'iptables.minSyncPeriod: -1s must not be negative: give 0s or more'],
    ['iptables: {minSyncPeriod: 31s}', 'iptables.minSyncPeriod: 31s must not exceed syncPeriod: give 30s or less'],
    ['mode: ipvs\nipvs: {minSyncPeriod: 31s}', 'ipvs.minSyncPeriod: 31s must not exceed syncPeriod: give 30s or less'],
    [
      'mode: nftables\nnftables: {minSyncPeriod: 31s}',
      'nftables.minSyncPeriod: 31s must not exceed syncPeriod: give 30s or less',
    ],
    ['iptables: {syncPeriod: 2h, minSyncPeriod: 61m}', 'iptables.minSyncPeriod: 1h1m0s must not exceed 1h'],
    [
      'bindAddress: localhost',
      'bindAddress: "localhost" is not an IP address: give one of this node, or 0.0.0.0 or ::',
    ],
    ['healthzBindAddress: localhost:1', 'healthzBindAddress: "localhost:1" is not IP:port with a port from 1 to 65535'],
    ['healthzBindAddress: "1.2.3.4:0"', 'healthzBindAddress: "1.2.3.4:0" is not IP:port with a port from 1 to 65535'],
    [
      'metricsBindAddress: "1.2.3.4:65536"',
      'metricsBindAddress: "1.2.3.4:65536" is not IP:port with a port from 1 to 65535',
    ],
    [
      'nodePortAddresses: [10.0.0.1]',
      'nodePortAddresses: "10.0.0.1" is not a CIDR such as 10.244.0.0/16, nor "primary"',
    ],
    [
      'nodePortAddresses: [primary, 10.0.0.0/8]',
      'nodePortAddresses: "primary" stands for itself and cannot be mixed with CIDRs, as in "primary,10.0.0.0/8": give one or the other',
    ],
    [
      'nodePortAddresses: [primary, primary]',
      'nodePortAddresses: "primary" stands for itself and cannot be mixed with CIDRs, as in "primary,primary": give one or the other',
    ],
    [
      'showHiddenMetricsForVersion: "1.36"',
      'showHiddenMetricsForVersion: "1.36" is not the previous minor release, "1.35": give that, or leave it empty',
    ],
    [
      'showHiddenMetricsForVersion: "1.34"',
      'showHiddenMetricsForVersion: "1.34" is not the previous minor release, "1.35": give that, or leave it empty',
    ],
    [
      'detectLocalMode: Cluster',
      'detectLocalMode: "Cluster" is none of "ClusterCIDR", "NodeCIDR", "BridgeInterface", "InterfaceNamePrefix"',
    ],
    [
      'detectLocalMode: BridgeInterface',
      'detectLocal.bridgeInterface: "" names nothing, but is needed by the mode BridgeInterface: name the bridge of the pods',
    ],
    [
      'detectLocalMode: InterfaceNamePrefix',
      `detectLocal.interfaceNamePrefix: "" names nothing, but is needed by the mode InterfaceNamePrefix: give how names of pods’ interfaces begin`,
    ],
    ['clusterCIDR: 10.0.0.0', 'clusterCIDR: "10.0.0.0" is not a CIDR such as 10.244.0.0/16'],
    ['clusterCIDR: "10.0.0.0/8, fd00::/8"', 'clusterCIDR: " fd00::/8" is not a CIDR such as 10.244.0.0/16'],
    [
      'clusterCIDR: 10.0.0.0/8,11.0.0.0/8',
      'clusterCIDR: "10.0.0.0/8,11.0.0.0/8" has more than one CIDR of a family: give one, or one IPv4 and one IPv6',
    ],
    [
      'clusterCIDR: 10.0.0.0/8,fd00::/8,fd01::/16',
      'clusterCIDR: "10.0.0.0/8,fd00::/8,fd01::/16" has more than one CIDR of a family: give one, or one IPv4 and one IPv6',
    ],
    ['logging: {format: xml}', 'logging.format: "xml" is none of "text", "json"'],
    [
      'logging: {format: json, vmodule: [{filePattern: a, verbosity: 1}]}',
      'logging.vmodule: "a=1" works with the format "text" only, and the format is "json": leave it out',
    ],
    [
      'logging: {options: {text: {splitStream: true}}}',
      'logging.options.text.splitStream: true needs the feature gate LoggingAlphaOptions: leave it out, or set featureGates.LoggingAlphaOptions to true',
    ],
    [
      'logging: {options: {json: {infoBufferSize: 1Ki}}}',
      'logging.options.json.infoBufferSize: 1Ki needs the feature gate LoggingAlphaOptions: leave it out, or set featureGates.LoggingAlphaOptions to true',
    ],
    ['nodeplane: {iptablesVariant: ebpf}', 'nodeplane.iptablesVariant: "ebpf" is none of "auto", "legacy", "nft"'],
    [
      'nodeplane: {serviceProxyName: a/b}',
      'nodeplane.serviceProxyName: "a/b" cannot be the value of a label: give up to 63 letters, digits, "-", "_" and ".", the first and last no sign',
    ],
    ['nodeplane: {logLevel: loud}', 'nodeplane.logLevel: "loud" is none of "debug", "info", "warn", "error"'],
  ])('%s', (body, problem) => {
    expect(problemsWith(`${body}\n`)).toEqual([problem]);
  });

  it('a sync period of 0, and an empty metrics address, which only flags can bring about', () => {
    expect(problemsWith('', ['iptables.syncPeriod', 0], ['iptables.minSyncPeriod', 0])).toEqual([
      'iptables.syncPeriod: 0s must be greater than 0: 30s is the default',
    ]);
    expect(problemsWith('', ['metricsBindAddress', ''])).toEqual([
      'metricsBindAddress: "" is not IP:port with a port from 1 to 65535',
    ]);
  });

  it('everything at once', () => {
    expect(problemsWith('oomScoreAdj: 9999\nmode: x\nbindAddress: z\nclusterCIDR: a,b\n')).toHaveLength(5);
  });
});

describe('validate accepts', () => {
  it.each([
    [''],
    ['iptables: {masqueradeBit: 0}'],
    ['iptables: {masqueradeBit: 31}'],
    ['nftables: {masqueradeBit: 32}'],
    ['ipvs: {excludeCIDRs: [x], tcpTimeout: -1s}'],
    ['mode: ipvs\nipvs: {excludeCIDRs: [10.0.0.0/8, "fd00::/8"]}'],
    ['oomScoreAdj: 1000'],
    ['oomScoreAdj: -1000'],
    ['clientConnection: {qps: -1}'],
    ['iptables: {syncPeriod: 5s, minSyncPeriod: 5s}'],
    ['iptables: {syncPeriod: 2h, minSyncPeriod: 1h}'],
    ['iptables: {minSyncPeriod: 31s}\nmode: nftables'],
    ['bindAddress: 010.000.000.001'],
    ['nodePortAddresses: [primary]'],
    ['nodePortAddresses: [010.0.0.0/8]'],
    ['showHiddenMetricsForVersion: "1.35"'],
    ['detectLocalMode: NodeCIDR\nclusterCIDR: nonsense'],
    ['clusterCIDR: fd00::/8,10.0.0.0/8'],
    ['logging: {format: json}'],
    ['featureGates: {LoggingAlphaOptions: true}\nlogging: {options: {text: {splitStream: true, infoBufferSize: 1M}}}'],
    ['nodeplane: {serviceProxyName: my-proxy_1.x}'],
  ])('%s', (body) => {
    expect(problemsWith(`${body}\n`)).toEqual([]);
  });

  it('an empty health address: no health server', () => {
    expect(problemsWith('', ['healthzBindAddress', ''])).toEqual([]);
  });
});
