import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { configOf, read, refusalOf } from '../../test/fakes/command-line.ts';
import { formatCidr, formatIp } from '../core/index.ts';
import { FLAG_NAMES, flagNamed } from './flags/flags.ts';
import { formatBindAddress } from './values/bind-address.ts';

describe('what to do', () => {
  it.each([
    [[], 'run'],
    [['--init-only'], 'init-only'],
    [['--cleanup'], 'cleanup'],
    [['--cleanup', '--init-only'], 'cleanup'],
    [['--write-config-to=/w', '--cleanup'], 'write-config'],
    [['--write-config-to='], 'run'],
    [['--cleanup=false', '--version=false', '--help=false'], 'run'],
    [[''], 'run'],
  ])('for %j is %s', (argv, action) => {
    expect(read(argv).action).toBe(action);
  });

  it.each([
    [['--version'], 'Kubernetes v1.36.2\n'],
    [['--version=true', '--oom-score-adj=5000', '--config=/none'], 'Kubernetes v1.36.2\n'],
    [['--version=raw'], 'version.Info{Major:"1", Minor:"36", GitVersion:"v1.36.2", Compiler:"nodeplane 9.8.7"}\n'],
  ])('for %j is to print the version', (argv, stdout) => {
    expect(read(argv)).toEqual({ action: 'version', messages: [], output: { stdout, stderr: '' }, exitCode: 0 });
  });

  it('prints our own version as nodeplane agent', () => {
    const outcome = read(['--version'], undefined, { program: 'nodeplane agent' });
    expect(outcome).toMatchObject({ output: { stdout: 'nodeplane 9.8.7 (as kube-proxy v1.36.2)\n' } });
  });

  it('prints help before it looks at arguments', () => {
    const outcome = read(['--help', 'x', '--version']);
    if (outcome.action !== 'help') throw new Error(outcome.action);
    expect(outcome.exitCode).toBe(0);
    const { stdout } = outcome.output;
    expect(stdout).toContain('Usage:\n  kube-proxy [flags]\n');
    expect(stdout).toContain('  -v, --v number\n');
    expect(stdout).toContain('  --cleanup\n');
    expect(stdout).toMatch(/--iptables-sync-period duration\n.*\(default 30s\)\n/);
    for (const hidden of [
      '--healthz-port',
      '--metrics-port',
      '--machine-id-file',
      '--boot-id-file',
      '--manifests',
      '--node-name',
    ]) {
      expect(stdout).not.toContain(`${hidden} `);
    }
  });

  it('shows our own flags in the help of nodeplane agent', () => {
    const outcome = read(['-h'], undefined, { program: 'nodeplane agent' });
    expect(outcome).toMatchObject({
      output: { stdout: expect.stringContaining('--hostname-override, --node-name text\n') },
    });
    expect(outcome).toMatchObject({ output: { stdout: expect.stringContaining('--manifests text\n') } });
  });

  it('reports another version if only the suffix differs', () => {
    expect(configOf(['--version=v1.36.2-acme.3']).reportedVersion).toBe('v1.36.2-acme.3');
    expect(configOf([]).reportedVersion).toBe('v1.36.2');
    expect(refusalOf(['--version=v1.35.0'])).toContain('for "--version" flag');
  });

  it('writes the configuration only if it is usable', () => {
    const outcome = read(['--write-config-to=/w', '--cluster-cidr=10.0.0.0/8']);
    expect(outcome).toMatchObject({ path: '/w', text: expect.stringContaining('clusterCIDR: 10.0.0.0/8\n') });
    expect(refusalOf(['--write-config-to=/w', '--oom-score-adj=2000'])).toContain('oomScoreAdj');
  });
});

describe('refusals', () => {
  it('prints usage and error for flags that cannot be parsed', () => {
    expect(refusalOf(['--nope'])).toMatch(
      /^Usage:\n {2}kube-proxy \[flags\]\n[\s\S]*\nError: unknown flag: --nope \(--help shows all flags\)\n$/,
    );
  });

  it('takes no arguments', () => {
    expect(refusalOf(['--cleanup', 'false', '', 'x"y'])).toBe(
      'Error: "kube-proxy" does not take any arguments, got ["false" "" "x\\"y"]: flags begin with --\n',
    );
  });

  it('reports all problems at once, with field and flag', () => {
    expect(
      refusalOf([
        '--proxy-mode=nftables',
        '--iptables-sync-period=0',
        '--oom-score-adj=-1001',
        '--config-sync-period=0',
      ]),
    ).toBe(
      `kube-proxy: command failed:
  configSyncPeriod (--config-sync-period): 0s must be greater than 0: 15m0s is the default
  nftables.syncPeriod (--iptables-sync-period): 0s must be greater than 0: 30s is the default
  nftables.minSyncPeriod (--iptables-min-sync-period): 1s must not exceed syncPeriod: give 0s or less
  oomScoreAdj (--oom-score-adj): -1001 is not within -1000 and 1000
`,
    );
  });

  it('says which file cannot be read or decoded, and why', () => {
    expect(refusalOf(['--config=/none'])).toBe(
      `kube-proxy: command failed: Cannot read the configuration file "/none" (--config): name one that is there, or mount it: ENOENT: no such file or directory, open '/none'\n`,
    );
    expect(refusalOf([], 'mode: 3\n')).toBe(
      'kube-proxy: command failed: Cannot use the configuration file "/c" (--config): failed to decode: mode: expected text, found 3\n',
    );
  });

  it('needs a node name only where a node is needed', () => {
    expect(refusalOf([], undefined, { hostname: ' ' })).toContain('hostnameOverride (--hostname-override): is empty');
    expect(refusalOf(['--init-only'], 'hostnameOverride: " "\n')).toContain('hostnameOverride');
    expect(configOf(['--cleanup'], undefined, { hostname: '' }).nodeName).toBe('');
    expect(refusalOf(['--hostname-override= '])).toContain('must not be blank');
  });

  it('does not take an empty --cluster-cidr for none, unlike the file', () => {
    expect(refusalOf(['--cluster-cidr='])).toContain('clusterCIDR (--cluster-cidr): "" is given but empty');
    expect(configOf(['--cluster-cidr=', '--detect-local-mode=NodeCIDR']).detectLocal).toEqual({ mode: 'NodeCIDR' });
    expect(configOf(['--cluster-cidr='], 'clusterCIDR: ""\n').detectLocal).toEqual({ mode: 'ClusterCIDR', cidrs: [] });
  });

  it('never throws, whatever the words', () => {
    const word = fc.oneof(
      fc.string(),
      fc
        .tuple(
          fc.constantFrom(...FLAG_NAMES),
          fc.oneof(fc.string(), fc.constantFrom('0', '-1', '1s', 'true', '::', '1.2.3.4', 'ipvs', 'json')),
        )
        .map(([name, value]) => `--${name}=${value}`),
    );
    const program = fc.constantFrom('kube-proxy' as const, 'nodeplane agent' as const);
    fc.assert(
      fc.property(fc.array(word, { maxLength: 5 }), fc.string(), program, (argv, file, as) => {
        const outcome = read(argv, file, { program: as });
        if (outcome.action === 'refuse') expect(outcome.output.stderr).not.toBe('');
        else if ('config' in outcome) expect(outcome.config.syncPeriodMs).toBeGreaterThan(0);
      }),
    );
  });
});

describe('flags without a file', () => {
  it('say how objects are read', () => {
    expect(configOf(['--kube-api-content-type=application/json']).apiServer.protobuf).toBe(false);
    expect(configOf(['--kube-api-content-type=application/vnd.kubernetes.protobuf']).apiServer.protobuf).toBe(true);
  });

  it('give the values the proxy runs with', () => {
    const config = configOf([
      '--kubeconfig=/k',
      '--master=https://api',
      '--kube_api_qps=2.5',
      '--bind-address=192.168.000.007',
      '--healthz-bind-address=127.0.0.1',
      '--cluster-cidr=10.244.1.1/16,fd00:10:244::/48',
      '--nodeport-addresses=192.168.0.0/24',
      '--conntrack-tcp-timeout-established=2h',
      '--feature-gates=NativeHistograms=true',
      '-v=4',
    ]);
    expect(config).toMatchObject({
      nodeName: 'node-1',
      apiServer: { master: 'https://api', kubeconfig: '/k', qps: 2.5, burst: 10, protobuf: true },
      mode: 'iptables',
      masqueradeBit: 14,
      masqueradeAll: false,
      syncPeriodMs: 30_000,
      minSyncPeriodMs: 1000,
      localhostNodePorts: 'as-kube-proxy',
      conntrack: {
        maxPerCore: 32768,
        min: 131072,
        tcpEstablishedTimeoutMs: 7_200_000,
        tcpCloseWaitTimeoutMs: 3_600_000,
      },
      logging: { format: 'text', verbosity: 4, level: 'debug' },
      ipvs: { scheduler: 'rr', excludeCidrs: [] },
      iptablesVariant: 'auto',
      manifests: '',
    });
    expect(formatIp(config.nodeIp!)).toBe('192.168.0.7');
    expect(formatBindAddress(config.healthzBindAddress!)).toBe('127.0.0.1:10256');
    expect(formatBindAddress(config.metricsBindAddress)).toBe('127.0.0.1:10249');
    expect((config.nodePortAddresses as never[]).map(formatCidr)).toEqual(['192.168.0.0/24']);
    if (config.detectLocal.mode !== 'ClusterCIDR') throw new Error(config.detectLocal.mode);
    expect(config.detectLocal.cidrs.map(formatCidr)).toEqual(['10.244.0.0/16', 'fd00:10:244::/48']);
    expect(config.featureGates.get('NativeHistograms')?.enabled).toBe(true);
  });

  it.each<[string[], object]>([
    [
      ['--masquerade-all', '--iptables-sync-period=7s', '--iptables-min-sync-period=0'],
      { syncPeriodMs: 7000, minSyncPeriodMs: 0, masqueradeAll: true },
    ],
    [
      [
        '--proxy-mode=nftables',
        '--masquerade-all',
        '--iptables-sync-period=7s',
        '--iptables-masquerade-bit=3',
        '--ipvs-sync-period=9s',
      ],
      {
        syncPeriodMs: 7000,
        minSyncPeriodMs: 1000,
        masqueradeAll: true,
        masqueradeBit: 14,
        nodePortAddresses: 'primary',
      },
    ],
    [
      [
        '--proxy-mode=ipvs',
        '--masquerade-all',
        '--iptables-min-sync-period=7s',
        '--iptables-masquerade-bit=3',
        '--ipvs-sync-period=9s',
      ],
      { syncPeriodMs: 9000, minSyncPeriodMs: 1000, masqueradeAll: true, masqueradeBit: 3, nodePortAddresses: 'all' },
    ],
    [['--proxy-mode=ipvs', '--ipvs-min-sync-period=0'], { minSyncPeriodMs: 0 }],
    [['--nodeport-addresses=primary'], { nodePortAddresses: 'primary' }],
    [['--nodeport-addresses='], { nodePortAddresses: 'all' }],
    [['--detect-local-mode='], { detectLocal: { mode: 'ClusterCIDR', cidrs: [] } }],
    [['--bind-address=', '--bind-address=::'], { nodeIp: undefined }],
    [['--hostname-override= Other '], { nodeName: 'other' }],
  ])('%j', (argv, expected) => {
    expect(configOf(argv)).toMatchObject(expected);
  });

  it.each([
    [[], '0.0.0.0:10256', '127.0.0.1:10249'],
    [['--healthz-port=1', '--metrics-port=2'], '0.0.0.0:10256', '127.0.0.1:10249'],
    [
      ['--healthz-bind-address=::', '--healthz-port=1', '--metrics-bind-address=[::1]', '--metrics-port=2'],
      '[::]:1',
      '[::1]:2',
    ],
    [['--healthz-bind-address=1.1.1.1:9', '--healthz-port=1'], '1.1.1.1:9', '127.0.0.1:10249'],
    [['--healthz-port=0'], undefined, '127.0.0.1:10249'],
    [['--healthz-bind-address=', '--metrics-bind-address='], '0.0.0.0:10256', '127.0.0.1:10249'],
    [['--bind-address=::'], '0.0.0.0:10256', '127.0.0.1:10249'],
    [
      ['--write-config-to=/w', '--healthz-port=0', '--metrics-bind-address=1.1.1.1', '--metrics-port=2'],
      '0.0.0.0:10256',
      '1.1.1.1:10249',
    ],
  ])('%j: servers at %s and %s', (argv, healthz, metrics) => {
    const { healthzBindAddress, metricsBindAddress } = configOf(argv);
    expect(healthzBindAddress && formatBindAddress(healthzBindAddress)).toBe(healthz);
    expect(formatBindAddress(metricsBindAddress)).toBe(metrics);
  });

  it('cannot switch the metrics server off', () => {
    expect(refusalOf(['--metrics-port=0'])).toContain('metricsBindAddress (--metrics-bind-address): "" is not IP:port');
  });

  it('warns of deprecated flags', () => {
    const { messages } = read(['--healthz_port=1']);
    expect(messages.filter(({ level }) => level === 'warn').map(({ text }) => text)).toEqual([
      'Flag --healthz-port has been deprecated, use --healthz-bind-address',
    ]);
  });

  it('logs every flag with its value at verbosity 1', () => {
    const lines = read(['--kubeconfig=/a "b"', '--nodeport-addresses=a,b', '--cleanup']).messages;
    // This is a refusal for the addresses; the flags are logged all the same.
    const texts = lines.filter(({ verbosity }) => verbosity === 1).map(({ text }) => text);
    expect(texts).toHaveLength(FLAG_NAMES.filter((name) => !flagNamed(name).own).length);
    expect(texts[0]).toBe('FLAG: --bind-address="0.0.0.0"');
    expect(texts).toContain('FLAG: --kubeconfig="/a \\"b\\""');
    expect(texts).toContain('FLAG: --nodeport-addresses="[a,b]"');
    expect(texts).toContain('FLAG: --cleanup="true"');
    expect(texts).toContain('FLAG: --iptables-sync-period="30s"');
    expect(texts).toContain('FLAG: --version="false"');
  });
});

it.each(['iptables', 'nftables', 'ipvs'])('mode %s has NodePorts at localhost always when asked for', (mode) => {
  const argv = [`--proxy-mode=${mode}`, '--localhost-nodeports', '--iptables-localhost-nodeports=false'];
  const outcome = read(argv, undefined, { program: 'nodeplane agent' });
  expect(outcome).toMatchObject({ action: 'run', config: { localhostNodePorts: 'always' } });
});
