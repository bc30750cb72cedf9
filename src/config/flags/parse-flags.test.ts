import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { FLAG_NAMES, FLAGS, flagNamed } from './flags.ts';
import { parseFlags } from './parse-flags.ts';

const flagsOf = (...argv: string[]) => parseFlags(argv, 'kube-proxy').flags;

describe('parseFlags', () => {
  it.each<[string[], object]>([
    [['--proxy-mode=ipvs'], { 'proxy-mode': 'ipvs' }],
    [['--proxy-mode', 'ipvs'], { 'proxy-mode': 'ipvs' }],
    [['--proxy_mode=a_b'], { 'proxy-mode': 'a_b' }],
    [['--conntrack_tcp-timeout_established', '1h'], { 'conntrack-tcp-timeout-established': 3_600_000 }],
    [['--oom-score-adj', '-999'], { 'oom-score-adj': -999 }],
    [['--master='], { master: '' }],
    [['--master', '--x'], { master: '--x' }],
    [['--master=a=b'], { master: 'a=b' }],
    [['--masquerade-all'], { 'masquerade-all': true }],
    [['--masquerade-all=false'], { 'masquerade-all': false }],
    [['--masquerade-all=T'], { 'masquerade-all': true }],
    [['-v', '4'], { v: 4 }],
    [['-v4'], { v: 4 }],
    [['-v=4'], { v: 4 }],
    [['--v=4'], { v: 4 }],
    [['-h'], { help: true }],
    [['-hv=2'], { help: true, v: 2 }],
    [['--version'], { version: 'line' }],
    [['--version=raw'], { version: 'raw' }],
    [['--version=false'], { version: 'none' }],
    [['--oom-score-adj=1', '--oom-score-adj=2'], { 'oom-score-adj': 2 }],
    [['--nodeport-addresses=a,b', '--nodeport-addresses', 'c'], { 'nodeport-addresses': ['a', 'b', 'c'] }],
    [['--nodeport-addresses='], { 'nodeport-addresses': [] }],
    [['--feature-gates=A=true,B=true', '--feature-gates=B=false'], { 'feature-gates': { A: true, B: false } }],
    [
      ['--vmodule=a=1', '--vmodule=b=2'],
      {
        vmodule: [
          { filePattern: 'a', verbosity: 1 },
          { filePattern: 'b', verbosity: 2 },
        ],
      },
    ],
    [
      ['--machine-id-file=/etc/machine-id', '--boot_id_file', '/x'],
      { 'machine-id-file': '/etc/machine-id', 'boot-id-file': '/x' },
    ],
  ])('reads %j', (argv, flags) => {
    expect(parseFlags(argv, 'kube-proxy')).toEqual({ flags, positionals: [] });
  });

  it('never takes the next word as the value of a boolean flag', () => {
    expect(parseFlags(['--cleanup', 'false'], 'kube-proxy')).toEqual({
      flags: { cleanup: true },
      positionals: ['false'],
    });
  });

  it('takes everything after -- for arguments', () => {
    expect(parseFlags(['a', '--cleanup', '--', '--master'], 'kube-proxy')).toEqual({
      flags: { cleanup: true },
      positionals: ['a', '--master'],
    });
  });

  it.each([
    [['--foo'], 'unknown flag: --foo (--help shows all flags)'],
    [['--foo_bar=1'], 'unknown flag: --foo_bar (--help shows all flags)'],
    [['--cluster-cdir=1'], 'unknown flag: --cluster-cdir (did you mean --cluster-cidr?)'],
    [['--Kube_Config=c'], 'unknown flag: --Kube_Config (did you mean --kubeconfig?)'],
    [['--no-cleanup'], 'unknown flag: --no-cleanup (--help shows all flags)'],
    [['--enable-dsr'], 'unknown flag: --enable-dsr (--help shows all flags)'],
    [['--windows-service'], 'unknown flag: --windows-service (--help shows all flags)'],
    [['--manifests=/m'], 'unknown flag: --manifests (--help shows all flags)'],
    [['--node-name=n'], 'unknown flag: --node-name (--help shows all flags)'],
    [['--toString'], 'unknown flag: --toString (--help shows all flags)'],
    [['-xyz'], "unknown shorthand flag: 'x' in -xyz (--help shows all flags)"],
    [['--oom-score-adj'], 'flag needs an argument: --oom-score-adj (a whole number from -2147483648 to 2147483647)'],
    [['-v'], 'flag needs an argument: -v (a whole number from 0 to 4294967295)'],
    [
      ['--oom-score-adj=low'],
      'invalid argument "low" for "--oom-score-adj" flag: expected a whole number from -2147483648 to 2147483647',
    ],
    [['--cleanup=maybe'], 'invalid argument "maybe" for "--cleanup" flag: expected true or false'],
    [
      ['--config_sync_period', '15'],
      'invalid argument "15" for "--config-sync-period" flag: expected a duration such as 500ms, 30s or 1m30s',
    ],
  ])('refuses %j', (argv, message) => {
    expect(() => parseFlags(argv, 'kube-proxy')).toThrow(expect.objectContaining({ code: 'ERR_CONFIG', message }));
  });

  it('knows our own flags as nodeplane agent', () => {
    const { flags } = parseFlags(['--manifests=/m', '--node_name=n', '--iptables-variant', 'nft'], 'nodeplane agent');
    expect(flags).toEqual({ manifests: '/m', 'hostname-override': 'n', 'iptables-variant': 'nft' });
  });

  it('reads any list of words or refuses it with an error of ours', () => {
    const word = fc.oneof(
      fc.string(),
      fc.constantFrom('--', '-', '--=', '-=', '---', '-v', '--v', '0', 'true'),
      fc.tuple(fc.constantFrom(...FLAG_NAMES), fc.string()).map(([name, value]) => `--${name}=${value}`),
      fc.constantFrom(...FLAG_NAMES).map((name) => `--${name.replaceAll('-', '_')}`),
    );
    fc.assert(
      fc.property(fc.array(word, { maxLength: 6 }), (argv) => {
        try {
          const { flags } = parseFlags(argv, 'nodeplane agent');
          expect(Object.keys(flags).every((name) => Object.hasOwn(FLAGS, name))).toBe(true);
        } catch (error) {
          expect(error).toMatchObject({ name: 'NodeplaneError', code: 'ERR_CONFIG' });
        }
      }),
    );
  });
});

// Flag, field, default as FLAG lines show it. `~` marks flags that no field stands behind.
const TABLE = `
  bind-address bindAddress 0.0.0.0
  bind-address-hard-fail bindAddressHardFail false
  boot-id-file ~
  cleanup ~ false
  cluster-cidr clusterCIDR
  config ~
  config-sync-period configSyncPeriod 15m0s
  conntrack-max-per-core conntrack.maxPerCore 32768
  conntrack-min conntrack.min 131072
  conntrack-tcp-be-liberal conntrack.tcpBeLiberal false
  conntrack-tcp-timeout-close-wait conntrack.tcpCloseWaitTimeout 1h0m0s
  conntrack-tcp-timeout-established conntrack.tcpEstablishedTimeout 24h0m0s
  conntrack-udp-timeout conntrack.udpTimeout 0s
  conntrack-udp-timeout-stream conntrack.udpStreamTimeout 0s
  detect-local-mode detectLocalMode
  feature-gates featureGates
  healthz-bind-address healthzBindAddress 0.0.0.0:10256
  healthz-port ~ 10256
  help ~ false
  hostname-override hostnameOverride
  init-only ~ false
  iptables-localhost-nodeports iptables.localhostNodePorts true
  iptables-masquerade-bit iptables.masqueradeBit 14
  iptables-min-sync-period iptables.minSyncPeriod 1s
  iptables-sync-period iptables.syncPeriod 30s
  ipvs-exclude-cidrs ipvs.excludeCIDRs []
  ipvs-min-sync-period ipvs.minSyncPeriod 1s
  ipvs-scheduler ipvs.scheduler
  ipvs-strict-arp ipvs.strictARP false
  ipvs-sync-period ipvs.syncPeriod 30s
  ipvs-tcp-timeout ipvs.tcpTimeout 0s
  ipvs-tcpfin-timeout ipvs.tcpFinTimeout 0s
  ipvs-udp-timeout ipvs.udpTimeout 0s
  kube-api-burst clientConnection.burst 10
  kube-api-content-type clientConnection.contentType application/vnd.kubernetes.protobuf
  kube-api-qps clientConnection.qps 5
  kubeconfig clientConnection.kubeconfig
  log-flush-frequency logging.flushFrequency 5s
  log-json-info-buffer-size logging.options.json.infoBufferSize 0
  log-json-split-stream logging.options.json.splitStream false
  log-text-info-buffer-size logging.options.text.infoBufferSize 0
  log-text-split-stream logging.options.text.splitStream false
  logging-format logging.format text
  machine-id-file ~
  masquerade-all iptables.masqueradeAll false
  master ~
  metrics-bind-address metricsBindAddress 127.0.0.1:10249
  metrics-port ~ 10249
  nodeport-addresses nodePortAddresses []
  oom-score-adj oomScoreAdj -999
  pod-bridge-interface detectLocal.bridgeInterface
  pod-interface-name-prefix detectLocal.interfaceNamePrefix
  profiling enableProfiling false
  proxy-mode mode
  show-hidden-metrics-for-version showHiddenMetricsForVersion
  v logging.verbosity 0
  version ~ false
  vmodule logging.vmodule
  write-config-to ~
`;

describe('the flags of kube-proxy', () => {
  it('are all there, with field and default', () => {
    const lines = FLAG_NAMES.filter((name) => !flagNamed(name).own)
      .sort()
      .map((name) => {
        const { path = '~', type, fallback } = flagNamed(name);
        return `${name} ${path} ${type.toFlag(fallback)}`.trim();
      });
    expect(lines).toEqual(TABLE.trim().split(/\n\s*/));
  });

  it('keep acting beside a configuration file only if they are these', () => {
    const beside = FLAG_NAMES.filter((name) => flagNamed(name).besideFile && !flagNamed(name).own).sort();
    expect(beside).toEqual([
      'cleanup',
      'config',
      'help',
      'hostname-override',
      'init-only',
      'log-flush-frequency',
      'log-json-info-buffer-size',
      'log-json-split-stream',
      'log-text-info-buffer-size',
      'log-text-split-stream',
      'logging-format',
      'master',
      'v',
      'version',
      'vmodule',
      'write-config-to',
    ]);
  });
});

it('gives the flags typed values', () => {
  const period: number | undefined = flagsOf('--iptables-sync-period=1s')['iptables-sync-period'];
  expect(period).toBe(1000);
});
