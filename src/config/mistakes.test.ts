import { describe, expect, it } from 'vitest';
import { read, refusalOf } from '../../test/fakes/command-line.ts';

// What an operator can get wrong in flags and file. Each mistake is refused in a line that names the field, what was found
// there, and what to do.

const AGENT = { program: 'nodeplane agent' } as const;

/** The flags, or the file; the field as it was written; what was found; what to do. */
type Mistake = readonly [given: string, field: string, value: string, remedy: string];

const IN_FLAGS: readonly Mistake[] = [
  ['--proxymode=ipvs', 'unknown flag', '--proxymode', 'did you mean --proxy-mode?'],
  ['--nodeport_adresses=primary', 'unknown flag', '--nodeport_adresses', 'did you mean --nodeport-addresses?'],
  ['-x', 'unknown shorthand flag', "'x' in -x", '--help shows all flags'],
  ['ipvs', 'arguments', '"ipvs"', 'flags begin with --'],
  ['--proxy-mode', '--proxy-mode', 'needs an argument', '(text)'],
  ['--cleanup=maybe', '--cleanup', '"maybe"', 'expected true or false'],
  ['--profiling=yes', '--profiling', '"yes"', 'expected true or false'],
  ['--v=loud', '--v', '"loud"', 'expected a whole number from 0'],
  ['--conntrack-min=1.5', '--conntrack-min', '"1.5"', 'expected a whole number'],
  ['--conntrack-min=-1', '--conntrack-min', '-1 must not be negative', 'give 0 or more'],
  ['--conntrack-tcp-timeout-established=-1h', '--conntrack-tcp-timeout-established', '-1h0m0s', 'give 0s or more'],
  ['--iptables-sync-period=30', '--iptables-sync-period', '"30"', 'expected a duration such as 500ms, 30s or 1m30s'],
  ['--iptables-sync-period=-1s', '--iptables-sync-period', '-1s must be greater than 0', '30s is the default'],
  ['--iptables-min-sync-period=40s', '--iptables-min-sync-period', '40s must not exceed', 'give 30s or less'],
  ['--config-sync-period=-1s', '--config-sync-period', '-1s', '15m0s is the default'],
  ['--feature-gates=Nope', '--feature-gates', '"Nope"', 'such as AllAlpha=false'],
  ['--feature-gates=Nope=true', '--feature-gates', '"Nope"', 'leave it out'],
  ['--feature-gates=NFTablesProxyMode=false', '--feature-gates', 'NFTablesProxyMode" to false', 'leave it out'],
  ['--config=/missing', '--config', '"/missing"', 'name one that is there, or mount it'],
  ['--version=1.34', '--version', '"1.34"', 'v1.36.2 with a suffix of your own'],
  ['--hostname-override= ', '--hostname-override', '" "', 'give the name of this machine’s Node object'],
  ['--proxy-mode=userspace', '--proxy-mode', '"userspace"', '"iptables", "ipvs", "nftables"'],
  ['--logging-format=yaml', '--logging-format', '"yaml"', 'none of "text", "json"'],
  ['--log-level=verbose', '--log-level', '"verbose"', '"debug", "info", "warn", "error"'],
  ['--vmodule=runner', '--vmodule', '"runner"', 'such as runner=4'],
  ['--kube-api-qps=fast', '--kube-api-qps', '"fast"', 'expected a number'],
  ['--kube-api-burst=-1', '--kube-api-burst', '-1', 'give 0 or more'],
  ['--cluster-cidr=', '--cluster-cidr', '""', 'name the pod addresses, or leave it out'],
  ['--cluster-cidr=10.0.0.1', '--cluster-cidr', '"10.0.0.1"', 'such as 10.244.0.0/16'],
  ['--cluster-cidr=10.0.0.0/9,10.128.0.0/9', '--cluster-cidr', '"10.0.0.0/9,10.128.0.0/9"', 'one IPv4 and one IPv6'],
  ['--bind-address=localhost', '--bind-address', '"localhost"', 'or 0.0.0.0 or ::'],
  ['--metrics-bind-address=:10249', '--metrics-bind-address', '":10249"', 'IP:port with a port from 1 to 65535'],
  ['--healthz-bind-address=0.0.0.0:0', '--healthz-bind-address', '"0.0.0.0:0"', 'a port from 1 to 65535'],
  ['--oom-score-adj=5000', '--oom-score-adj', '5000', 'within -1000 and 1000'],
  ['--iptables-masquerade-bit=32', '--iptables-masquerade-bit', '32', 'within 0 and 31'],
  ['--nodeport-addresses=primary,10.0.0.0/8', '--nodeport-addresses', '"primary,10.0.0.0/8"', 'give one or the other'],
  ['--detect-local-mode=Cluster', '--detect-local-mode', '"Cluster"', '"ClusterCIDR", "NodeCIDR"'],
  ['--detect-local-mode=BridgeInterface', '--pod-bridge-interface', '""', 'name the bridge of the pods'],
  ['--detect-local-mode=InterfaceNamePrefix', '--pod-interface-name-prefix', '""', 'how names of pods'],
  ['--show-hidden-metrics-for-version=1.30', '--show-hidden-metrics-for-version', '"1.30"', 'or leave it empty'],
  ['--log-json-split-stream', '--log-json-split-stream', 'true', 'leave it out'],
  ['--proxy-mode=ipvs --ipvs-exclude-cidrs=10.0.0.1', '--ipvs-exclude-cidrs', '"10.0.0.1"', 'such as 10.244.0.0/16'],
  ['--proxy-mode=ipvs --ipvs-udp-timeout=-1s', '--ipvs-udp-timeout', '-1s', 'give 0s or more'],
  ['--metrics-port=99999', '--metrics-port', '"99999"', 'expected a port from 0 to 65535'],
  ['--healthz-port=-1', '--healthz-port', '"-1"', 'expected a port from 0 to 65535'],
  ['--proxy-mode=ipvs --ipvs-scheduler=zz', '--ipvs-scheduler', '"zz"', 'give one of "rr"'],
  ['--master=ftp://x', '--master', '"ftp://x"', 'such as https://192.0.2.1:6443'],
  ['--master=http://foo%bar:6443', '--master', '"http://foo%bar:6443"', 'such as https://192.0.2.1:6443'],
  ['--iptables-variant=nftables', '--iptables-variant', '"nftables"', '"legacy", "nft"'],
  ['--service-proxy-name=-x', '--service-proxy-name', '"-x"', 'up to 63 letters'],
  ['--external-ip-cidrs=203.0.113.7', '--external-ip-cidrs', '"203.0.113.7"', 'such as 10.244.0.0/16'],
  ['--cni --cni-bin-dir=opt/cni', '--cni-bin-dir', '"opt/cni"', 'begins with /'],
  [`--cni --cni-socket=/${'x'.repeat(107)}`, '--cni-socket', 'xxx"', 'give a shorter one'],
  ['--cni --cni-pod-cidrs=127.0.5.0/24', '--cni-pod-cidrs', '"127.0.5.0/24"', 'is loopback'],
  ['--cni --cni-pod-cidrs=10.0.0.0/31', '--cni-pod-cidrs', '"10.0.0.0/31"', 'give a larger range'],
  ['--cni --cni-pod-cidrs=10.1.0.0/16,10.1.2.0/24', '--cni-pod-cidrs', '"10.1.2.0/24"', 'overlaps "10.1.0.0/16"'],
  ['--cni --cni-pod-cidrs=10.1.1.1', '--cni-pod-cidrs', '"10.1.1.1"', 'such as 10.244.0.0/16'],
  ['--cni --cni-macvlan-ipam={', '--cni-macvlan-ipam', '"{"', 'such as {"type":"dhcp"}'],
  ['--cni --cni-macvlan-namespaces=A_b', '--cni-macvlan-namespaces', '"A_b"', 'small letters, digits'],
  ['--cni --cni-macvlan-masters=eth0/1', '--cni-macvlan-masters', '"eth0/1"', '"ip link" shows'],
  ['--cni --cni-macvlan-mode=passthru', '--cni-macvlan-mode', '"passthru"', '"private", "bridge", "vepa"'],
  ['--routes=bgp', '--routes', '"bgp"', '"host-gw", "vxlan", "wireguard", "auto"'],
  ['--routes=vxlan --routes-vni=16777216', '--routes-vni', '16777216', 'within 0 and 16777215'],
  ['--routes=vxlan --routes-port=0', '--routes-port', '0', 'within 1 and 65535'],
  ['--routes=vxlan --routes-mtu=9', '--routes-mtu', '9 is not', 'within 576 and 65535'],
  ['--routes=vxlan --routes-interface=averylonginterface', '--routes-interface', '"averylonginterface"', '"ip link"'],
  [
    '--routes=vxlan --masquerade-cidrs=none,ipv4',
    '--masquerade-cidrs',
    '"none,ipv4"',
    'give it alone, or leave it out',
  ],
  ['--routes=vxlan --routes-flannel-subnet-file=/x', '--routes-flannel-subnet-file', '"/x"', 'give clusterCIDR'],
  ['--routes-flannel-net-conf=/missing', '--routes-flannel-net-conf', '"/missing"', 'cannot be read'],
  ['--pod-cidrs-from=dhcp', '--pod-cidrs-from', '"dhcp"', '"node", "pool"'],
  ['--cni --pod-cidrs-from=pool', '--pool-cidrs', '""', 'name the pools of the cluster'],
  ['--pod-cidrs-from=pool --pool-cidrs=10.0.0.0/8', '--pod-cidrs-from', '"pool"', 'switch that on, or give "node"'],
  ['--pod-cidrs-from=pool --pool-block-size=31', '--pool-block-size', '31', 'within 8 and 30'],
  ['--pod-cidrs-from=pool --pool-reclaim-after=1m', '--pool-reclaim-after', '1m0s', 'must not be less than 3m'],
  ['--pod-cidrs-from=pool --cni-pod-cidrs=10.9.0.0/24', '--cni-pod-cidrs', '"10.9.0.0/24"', 'leave it out'],
  ['--pod-cidrs-from=pool --detect-local-mode=NodeCIDR', '--detect-local-mode', '"NodeCIDR"', 'use ClusterCIDR'],
];

const IN_FILE: readonly Mistake[] = [
  ['mode: [a', '"/c" (--config)', 'at line 3, column 9', 'must be sufficiently indented and end with a ]'],
  ['a: *x', '"/c" (--config)', 'x', 'the anchor must be set before the alias'],
  ['mode: 7', 'mode', 'found 7', 'expected text'],
  [
    'kind: ConfigMap',
    '"/c" (--config)',
    '"ConfigMap"',
    '"KubeProxyConfiguration" of "kubeproxy.config.k8s.io/v1alpha1" is needed',
  ],
  [
    'apiVersion: kubeproxy.config.k8s.io/v1beta1',
    '"/c" (--config)',
    'of apiVersion "kubeproxy.config.k8s.io/v1beta1"',
    'of "kubeproxy.config.k8s.io/v1alpha1" is needed',
  ],
  ['kind: kubeproxyconfiguration', '"/c" (--config)', '"kubeproxyconfiguration"', '"KubeProxyConfiguration" of'],
  ['mode:\n\t- x', '"/c" (--config)', 'at line 4, column 1', 'Tabs are not allowed'],
  ['clusterCIDR: [10.0.0.0/8]', 'clusterCIDR', 'found ["10.0.0.0/8"]', 'expected text'],
  ['iptables: {masqueradeAll: "yes"}', 'iptables.masqueradeAll', 'found "yes"', 'true or false'],
  ['oomScoreAdj: low', 'oomScoreAdj', 'found "low"', 'expected a whole number'],
  ['conntrack: {tcpEstablishedTimeout: 1d}', 'conntrack.tcpEstablishedTimeout', 'found "1d"', 'a duration such as'],
  ['mode: ipvs\nipvs: {excludeCIDRs: [a]}', 'ipvs.excludeCIDRs', '"a"', 'such as 10.244.0.0/16'],
  ['nodeplane: {routes: {mode: bgp}}', 'nodeplane.routes.mode', '"bgp"', '"host-gw", "vxlan"'],
  ['nodeplane: {pools: {cidrs: 10.0.0.0/8}}', 'nodeplane.pools.cidrs', 'found "10.0.0.0/8"', 'a list of texts'],
  ['iptables: 5', 'iptables', 'found 5', 'expected a section with fields'],
  ['iptables: {syncPeriod: 30}', 'iptables.syncPeriod', 'found 30', 'a duration such as 500ms, 30s or 1m30s'],
  ['clientConnection: {qps: fast}', 'clientConnection.qps', 'found "fast"', 'expected a number'],
  ['nodePortAddresses: 10.0.0.0/8', 'nodePortAddresses', 'found "10.0.0.0/8"', 'expected a list of texts'],
  ['nodeplane: {cni: true}', 'nodeplane.cni', 'found true', 'expected a section with fields'],
  ['conntrack: {maxPerCore: many}', 'conntrack.maxPerCore', 'found "many"', 'expected a whole number'],
  ['featureGates: {AllAlpha: "yes"}', 'featureGates', 'found {"AllAlpha":"yes"}', 'true or false'],
  ['nftables: {masqueradeBit: 40}\nmode: nftables', 'nftables.masqueradeBit', '40', 'within 0 and 31'],
  [
    'logging: {format: json, vmodule: [{filePattern: runner, verbosity: 1}]}',
    'logging.vmodule (--vmodule)',
    '"runner=1"',
    'leave it out',
  ],
  ['iptables: !!binary aGVsbG8=', 'iptables', 'found {"type":"Buffer"', 'expected a section with fields'],
  [
    'detectLocalMode: BridgeInterface\ndetectLocal: {bridgeInterface: "br 0"}',
    'detectLocal.bridgeInterface',
    '"br 0" has " " in it',
    'give it as "ip link" shows it',
  ],
  [
    'detectLocalMode: InterfaceNamePrefix\ndetectLocal: {interfaceNamePrefix: veth-of-the-pods}',
    'detectLocal.interfaceNamePrefix',
    '"veth-of-the-pods" is longer than 15 bytes',
    'give it as "ip link" shows it',
  ],
  ['nodeplane: {routes: {mode: auto, interface: eth/0}}', 'nodeplane.routes.interface', '"eth/0" has "/"', 'ip link'],
  [
    'nodeplane: {routes: {mode: auto, flannel: {subnetFile: run/x}}}\nclusterCIDR: 10.0.0.0/8',
    'nodeplane.routes.flannel.subnetFile',
    '"run/x"',
    'is no absolute path',
  ],
  ['logging: {options: {text: {infoBufferSize: 1M}}}', 'logging.options.text.infoBufferSize', '1M', 'leave it out'],
];

/** The line of a refusal that is about a field; where none names it, all there is, for the test to fail with. */
function lineAbout(field: string, refusal: string): string {
  return refusal.split('\n').find((line) => line.includes(field) && !/^ {6,}|^Usage/.test(line)) ?? refusal;
}

describe('a mistake in flags is refused with field, value and remedy', () => {
  it.each(IN_FLAGS)('%s', (given, field, value, remedy) => {
    const refusal = refusalOf(given === '--hostname-override= ' ? [given] : given.split(' '), undefined, AGENT);
    // Behind the usage, which names every flag.
    const reason = refusal.slice(Math.max(refusal.indexOf('Error: '), refusal.indexOf('command failed:')));
    const line = lineAbout(field, reason);
    for (const part of [field, value, remedy]) expect(line).toContain(part);
    expect(line.length).toBeLessThan(500);
  });
});

describe('a mistake in the file is refused with field, value and remedy', () => {
  it.each(IN_FILE)('%s', (body, field, value, remedy) => {
    const line = lineAbout(field, refusalOf([], body, AGENT));
    for (const part of ['"/c"', field, value, remedy]) expect(line).toContain(part);
  });
});

it('a flag that beats the file is not told as the file’s mistake', () => {
  const refusal = refusalOf(['--routes=bgp'], 'nodeplane: {routes: {mode: none}}\nmode: IPVS', AGENT);
  expect(lineAbout('nodeplane.routes.mode', refusal)).not.toContain('"/c"');
  expect(lineAbout('--proxy-mode', refusal)).toContain('"/c": mode');
});

it('an address with a space in it is no API server', () => {
  const refusal = refusalOf(['--master=foo bar'], undefined, AGENT);
  for (const part of ['--master', '"foo bar"', 'such as https://192.0.2.1:6443']) expect(refusal).toContain(part);
});

it('all mistakes are told at once', () => {
  const refusal = refusalOf(['--routes=bgp', '--log-level=all'], 'mode: IPVS', AGENT);
  for (const field of ['--routes', '--log-level', '--proxy-mode']) expect(lineAbout(field, refusal)).toContain(field);
  expect(refusal.match(/ is no/g)).toHaveLength(3);
});

it.each([
  ['modee: ipvs', 'unknown field "modee" (did you mean "mode"?)'],
  ['iptables: {sync_period: 30s}', 'unknown field "iptables.sync_period" (did you mean "syncPeriod"?)'],
  ['iptables: {lemon: 1}', 'unknown field "iptables.lemon"'],
  ['mode: ipvs\nmode: iptables', 'key "mode" already set in map (line 4)'],
  ['mode: ipvs\n---\nmode: iptables', 'has 1 more YAML document(s); only the first is read'],
])('what nobody reads in %j is warned of, as kube-proxy takes such a file', (body, told) => {
  const { messages } = read(['--config=/c'], body, AGENT);
  expect(messages).toContainEqual({ level: 'warn', verbosity: 0, text: expect.stringContaining(told) });
});

it('fields for another mode than the one that runs are named, but not those that are as by default', () => {
  const told = (body: string) =>
    read(['--config=/c'], body, AGENT)
      .messages.map(({ text }) => text)
      .filter((text) => text.includes('it is for mode'));
  expect(told('mode: iptables\nipvs: {scheduler: rr, strictARP: false}\nnftables: {masqueradeBit: 14}')).toEqual([
    'ipvs.scheduler has no effect: it is for mode ipvs, and the mode is iptables',
  ]);
  expect(told('mode: nftables\niptables: {masqueradeAll: true, syncPeriod: 30s}')).toEqual([
    'iptables.masqueradeAll has no effect: it is for mode iptables and ipvs, and the mode is nftables',
  ]);
  expect(told('mode: ipvs\niptables: {masqueradeAll: true}\nipvs: {scheduler: rr}')).toEqual([]);
});
