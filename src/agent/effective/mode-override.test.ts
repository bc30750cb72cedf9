import { pino } from 'pino';
import { expect, it } from 'vitest';
import { readCommandLine } from '../../config/index.ts';
import { type Node, PROXY_MODE_ANNOTATION } from '../../kube/index.ts';
import { configHash } from './config-hash.ts';
import { ModeOverride } from './mode-override.ts';

function read(argv: readonly string[], mode?: string, file?: string) {
  return readCommandLine(argv, {
    program: 'nodeplane agent',
    version: '1',
    hostname: 'node-1',
    readFile: () => `apiVersion: kubeproxy.config.k8s.io/v1alpha1\nkind: KubeProxyConfiguration\n${file}`,
    ...(mode !== undefined && { mode }),
  });
}

function configOf(argv: readonly string[], mode?: string, file?: string) {
  const outcome = read(argv, mode, file);
  if (outcome.action !== 'run') throw new Error(outcome.action);
  return outcome.config;
}

function override(argv: readonly string[], file?: string) {
  const inMode = (mode: string) => {
    const outcome = read(argv, mode, file);
    return outcome.action === 'run' ? outcome.config : 'output' in outcome ? outcome.output.stderr : '';
  };
  return new ModeOverride({ configured: configOf(argv, undefined, file), inMode, logger: pino({ level: 'silent' }) });
}

const nodeSaying = (mode?: string): Node => ({
  kind: 'Node',
  metadata: {
    name: 'node-1',
    namespace: '',
    ...(mode !== undefined && { annotations: { [PROXY_MODE_ANNOTATION]: mode } }),
  },
});

it.each([
  ['flags', ['--proxy-mode=iptables', '--iptables-sync-period=7s'], undefined],
  ['a file', ['--config=/c'], 'mode: iptables\nnftables: { syncPeriod: 7s }\n'],
])(
  'is the configuration that %s would give in that mode, and the configured one when the Node says nothing',
  (_, argv, file) => {
    const one = override(argv, file);
    expect(one.look(nodeSaying())).toBeUndefined();
    expect(one.look(nodeSaying('nftables'))).toEqual({ kind: 'restart' });
    expect(one.config).toMatchObject({ mode: 'nftables', syncPeriodMs: 7000, nodePortAddresses: 'primary' });
    expect(one.look(nodeSaying('nftables'))).toBeUndefined();
    expect(one.look(nodeSaying())).toEqual({ kind: 'restart' });
    expect(one.config.mode).toBe('iptables');
  },
);

it.each(['magic', '', 'IPTABLES', '<b>\u001b[31m\n', 'x'.repeat(200_000)])(
  'takes nonsense for nothing, and says so once and briefly: %j',
  (said) => {
    const one = override([]);
    const verdict = one.look(nodeSaying(said));
    expect(verdict).toMatchObject({ kind: 'problem', text: expect.stringContaining('mode iptables stays') });
    expect(one.look(nodeSaying(said))).toBeUndefined();
    expect(one.config.mode).toBe('iptables');
  },
);

it('refuses a mode in which the settings cannot be used', () => {
  const one = override(['--config=/c'], 'mode: iptables\nnftables: { minSyncPeriod: 40s }\n');
  const verdict = one.look(nodeSaying('nftables'));
  expect(verdict).toMatchObject({ kind: 'problem', text: expect.stringContaining('nftables.minSyncPeriod') });
});

it('the hash differs where a setting in force does, and nowhere else', () => {
  const hash = (argv: readonly string[], mode?: string, file?: string) => configHash(configOf(argv, mode, file));
  const plain = hash([]);
  expect(plain).toMatch(/^[0-9a-f]{12}$/);
  for (const same of [
    ['--hostname-override=other'],
    ['--proxy-mode=iptables'],
    // What the mode does not have is not in force.
    ['--ipvs-sync-period=7s'],
  ]) {
    expect(hash(same)).toBe(plain);
  }
  const others = [
    ['--proxy-mode=nftables'],
    ['--cluster-cidr=10.0.0.0/8'],
    ['--iptables-sync-period=7s'],
    ['--master=http://a'],
    ['--cni'],
    ['--bind-address=::'],
  ].map((argv) => hash(argv));
  expect(new Set([plain, ...others]).size).toBe(others.length + 1);
  expect(hash(['--bind-address=192.0.2.1'])).toBe(hash(['--bind-address=192.0.2.2']));
  expect(hash([], 'nftables')).toBe(hash(['--proxy-mode=nftables']));
  const gates = (...names: string[]) => `featureGates: { ${names.map((name) => `${name}: true`).join(', ')} }\n`;
  const [a, b] = ['AllAlpha', 'AllBeta'];
  expect(hash(['--config=/c'], undefined, gates(a!, b!))).toBe(hash(['--config=/c'], undefined, gates(b!, a!)));
});
