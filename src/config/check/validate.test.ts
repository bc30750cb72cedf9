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
    ['featureGates: {Nope: true}', 'featureGates: unrecognized feature gate "Nope"'],
    [
      'featureGates: {NFTablesProxyMode: false}',
      'featureGates: cannot set feature gate "NFTablesProxyMode" to false, it is locked to true',
    ],
    ['iptables: {masqueradeBit: 32}', 'iptables.masqueradeBit: 32 is not within 0 and 31'],
    ['mode: ipvs\niptables: {masqueradeBit: -1}', 'iptables.masqueradeBit: -1 is not within 0 and 31'],
    ['mode: nftables\niptables: {masqueradeBit: 32}', 'iptables.masqueradeBit: 32 is not within 0 and 31'],
    ['mode: nftables\nnftables: {masqueradeBit: 32}', 'nftables.masqueradeBit: 32 is not within 0 and 31'],
    ['mode: ipvs\nipvs: {tcpTimeout: -1s}', 'ipvs.tcpTimeout: must not be negative'],
    ['mode: ipvs\nipvs: {tcpFinTimeout: -1s}', 'ipvs.tcpFinTimeout: must not be negative'],
    ['mode: ipvs\nipvs: {udpTimeout: -1ns}', 'ipvs.udpTimeout: must not be negative'],
    [
      'mode: ipvs\nipvs: {excludeCIDRs: [10.0.0.1]}',
      'ipvs.excludeCIDRs: "10.0.0.1" is not a CIDR such as 10.244.0.0/16',
    ],
    ['conntrack: {maxPerCore: -1}', 'conntrack.maxPerCore: must not be negative'],
    ['conntrack: {min: -1}', 'conntrack.min: must not be negative'],
    ['conntrack: {tcpEstablishedTimeout: -1s}', 'conntrack.tcpEstablishedTimeout: must not be negative'],
    ['conntrack: {tcpCloseWaitTimeout: -1s}', 'conntrack.tcpCloseWaitTimeout: must not be negative'],
    ['conntrack: {udpTimeout: -1s}', 'conntrack.udpTimeout: must not be negative'],
    ['conntrack: {udpStreamTimeout: -1s}', 'conntrack.udpStreamTimeout: must not be negative'],
    ['oomScoreAdj: 1001', 'oomScoreAdj: 1001 is not within -1000 and 1000'],
    ['oomScoreAdj: -1001', 'oomScoreAdj: -1001 is not within -1000 and 1000'],
    ['mode: userspace', 'mode: "userspace" is none of "iptables", "ipvs", "nftables"'],
    ['mode: IPVS', 'mode: "IPVS" is none of "iptables", "ipvs", "nftables"'],
    ['clientConnection: {burst: -1}', 'clientConnection.burst: must not be negative'],
    ['configSyncPeriod: -1s', 'configSyncPeriod: must be greater than 0'],
    ['iptables: {minSyncPeriod: -1s}', 'iptables.minSyncPeriod: must not be negative'],
    ['iptables: {minSyncPeriod: 31s}', 'iptables.minSyncPeriod: must not exceed syncPeriod'],
    ['mode: ipvs\nipvs: {minSyncPeriod: 31s}', 'ipvs.minSyncPeriod: must not exceed syncPeriod'],
    ['mode: nftables\nnftables: {minSyncPeriod: 31s}', 'nftables.minSyncPeriod: must not exceed syncPeriod'],
    ['iptables: {syncPeriod: 2h, minSyncPeriod: 61m}', 'iptables.minSyncPeriod: must not exceed 1h'],
    ['bindAddress: localhost', 'bindAddress: "localhost" is not an IP address'],
    ['healthzBindAddress: localhost:1', 'healthzBindAddress: "localhost:1" is not IP:port with a port from 1 to 65535'],
    ['healthzBindAddress: "1.2.3.4:0"', 'healthzBindAddress: "1.2.3.4:0" is not IP:port with a port from 1 to 65535'],
    [
      'metricsBindAddress: "1.2.3.4:65536"',
      'metricsBindAddress: "1.2.3.4:65536" is not IP:port with a port from 1 to 65535',
    ],
    ['nodePortAddresses: [10.0.0.1]', 'nodePortAddresses: "10.0.0.1" is not a CIDR such as 10.244.0.0/16'],
    [
      'nodePortAddresses: [primary, 10.0.0.0/8]',
      'nodePortAddresses: "primary" stands for itself and cannot be mixed with CIDRs',
    ],
    [
      'nodePortAddresses: [primary, primary]',
      'nodePortAddresses: "primary" stands for itself and cannot be mixed with CIDRs',
    ],
    [
      'showHiddenMetricsForVersion: "1.36"',
      'showHiddenMetricsForVersion: "1.36" is not the previous minor release, "1.35"',
    ],
    [
      'showHiddenMetricsForVersion: "1.34"',
      'showHiddenMetricsForVersion: "1.34" is not the previous minor release, "1.35"',
    ],
    [
      'detectLocalMode: Cluster',
      'detectLocalMode: "Cluster" is none of "ClusterCIDR", "NodeCIDR", "BridgeInterface", "InterfaceNamePrefix"',
    ],
    ['detectLocalMode: BridgeInterface', 'detectLocal.bridgeInterface: is needed by the mode BridgeInterface'],
    [
      'detectLocalMode: InterfaceNamePrefix',
      'detectLocal.interfaceNamePrefix: is needed by the mode InterfaceNamePrefix',
    ],
    ['clusterCIDR: 10.0.0.0', 'clusterCIDR: "10.0.0.0" is not a CIDR such as 10.244.0.0/16'],
    ['clusterCIDR: "10.0.0.0/8, fd00::/8"', 'clusterCIDR: " fd00::/8" is not a CIDR such as 10.244.0.0/16'],
    ['clusterCIDR: 10.0.0.0/8,11.0.0.0/8', 'clusterCIDR: "10.0.0.0/8,11.0.0.0/8" has more than one CIDR of a family'],
    [
      'clusterCIDR: 10.0.0.0/8,fd00::/8,fd01::/16',
      'clusterCIDR: "10.0.0.0/8,fd00::/8,fd01::/16" has more than one CIDR of a family',
    ],
    ['logging: {format: xml}', 'logging.format: "xml" is none of "text", "json"'],
    [
      'logging: {format: json, vmodule: [{filePattern: a, verbosity: 1}]}',
      'logging.vmodule: works with the format "text" only',
    ],
    [
      'logging: {options: {text: {splitStream: true}}}',
      'logging.options.text.splitStream: needs the feature gate LoggingAlphaOptions',
    ],
    [
      'logging: {options: {json: {infoBufferSize: 1Ki}}}',
      'logging.options.json.infoBufferSize: needs the feature gate LoggingAlphaOptions',
    ],
    ['nodeplane: {iptablesVariant: ebpf}', 'nodeplane.iptablesVariant: "ebpf" is none of "auto", "legacy", "nft"'],
    ['nodeplane: {serviceProxyName: a/b}', 'nodeplane.serviceProxyName: "a/b" cannot be the value of a label'],
    ['nodeplane: {logLevel: loud}', 'nodeplane.logLevel: "loud" is none of "debug", "info", "warn", "error"'],
  ])('%s', (body, problem) => {
    expect(problemsWith(`${body}\n`)).toEqual([problem]);
  });

  it('a sync period of 0, and an empty metrics address, which only flags can bring about', () => {
    expect(problemsWith('', ['iptables.syncPeriod', 0], ['iptables.minSyncPeriod', 0])).toEqual([
      'iptables.syncPeriod: must be greater than 0',
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
