import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { createLab, removeAll } from '../lab.ts';
import { builtProgram } from '../programs.ts';

// `--init-only` where /proc/sys is read-only, as for a container that is not privileged, with and without another place for it.

const lab = createLab();
const node = lab.addNode({ name: 'node-1' });
const TIMEOUT = 'net.netfilter.nf_conntrack_tcp_timeout_established';
const root = join(lab.folder, 'proc-sys');
const binDir = join(lab.folder, 'bin');
mkdirSync(join(root, 'net'), { recursive: true });
afterAll(() => removeAll());

/** Runs it in mounts of its own; `$0` is the other place for sysctls. */
function initialise(...flags: string[]) {
  const script = `mount --bind /proc/sys/net "$0/net" && mount --bind /proc/sys /proc/sys &&
    mount -o remount,bind,ro /proc/sys && exec "$@"`;
  const program = [
    builtProgram('nodeplane'),
    'agent',
    '--init-only',
    '--node-name',
    'node-1',
    '--proxy-mode',
    'nftables',
  ];
  const inside = ['netns', 'exec', node.namespace.name, 'unshare', '--mount', 'sh', '-c', script, root, ...program];
  const { status, stderr } = spawnSync('ip', [...inside, '--logging-format', 'json', ...flags], { encoding: 'utf8' });
  const lines = stderr.split('\n').filter((line) => line.startsWith('{'));
  return { status, stderr, logs: lines.map((line) => JSON.parse(line) as Record<string, unknown>) };
}
const value = () => node.namespace.run('sysctl', '-n', TIMEOUT).trim();
const set = (seconds: number) => node.namespace.run('sysctl', '-w', `${TIMEOUT}=${seconds}`);
const aboutTimeout = ({ logs }: ReturnType<typeof initialise>) =>
  logs.filter(({ msg, written }) => `${msg}${written}`.includes('timeout_established'));

it('sets sysctls by the place that it is told, installs the plugin, and does nothing the second time', () => {
  set(432_000);
  const flags = [`--proc-sys-root=${root}`, '--cni', `--cni-bin-dir=${binDir}`];
  const first = initialise(...flags);
  expect(first).toMatchObject({ status: 0 });
  expect(aboutTimeout(first)).toMatchObject([{ level: 'info', msg: 'Connection tracking set up' }]);
  expect(value()).toBe('86400');
  expect(existsSync(join(binDir, 'nodeplane-cni'))).toBe(true);
  const second = initialise(...flags);
  expect(second.status).toBe(0);
  expect(aboutTimeout(second)).toEqual([]);
  expect(second.logs.some(({ msg }) => msg === 'CNI plugin installed')).toBe(false);
});

it('has nothing to say where it cannot write what is right already, and says what to do about what is wrong', () => {
  set(86_400);
  expect(aboutTimeout(initialise())).toEqual([]);
  set(1000);
  const [told, ...more] = aboutTimeout(initialise());
  expect(told).toMatchObject({ level: 'warn', msg: expect.stringMatching(/\(EROFS\); .*--init-only/) });
  expect(more).toEqual([]);
  expect(value()).toBe('1000');
});

it('refuses a place that has no sysctls, and names flag and path', () => {
  const { status, stderr } = initialise(`--proc-sys-root=${lab.folder}`);
  expect(status).toBe(1);
  expect(stderr).toContain(`"${lab.folder}" (--proc-sys-root)`);
  expect(stderr).toContain('mount the node');
  expect(initialise('--proc-sys-root=proc').stderr).toContain('nodeplane.procSysRoot');
});
