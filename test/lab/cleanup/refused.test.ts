import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { execIn } from '../iptables/fixtures.ts';
import { createFolder, createNamespace, removeAll } from '../namespace.ts';
import { builtProgram } from '../programs.ts';

afterAll(removeAll);

it.each([
  ['nodeplane', 'cleanup'],
  ['nodeplane', 'cleanup', '--dry-run'],
  ['nodeplane', 'cleanup', '--mode', 'nftables'],
  ['nodeplane', 'cleanup', '--leave-kube-proxy'],
  ['kube-proxy', '--cleanup'],
] as const)('%s %s: whoever may not see rules is not told that there are none', async (program, ...args) => {
  const node = createNamespace('node');
  for (const name of ['nodeplane', 'kube-proxy']) node.run('nft', 'add', 'table', 'ip', name);
  const words = ['--bounding-set=-net_admin', '--inh-caps=-net_admin', builtProgram(program), ...args];
  const { status, stdout, stderr } = await execIn(node)('setpriv', words);
  expect({ status, stdout }).toEqual({ status: 1, stdout: '' });
  expect(stderr).toContain('Cannot change packet rules without CAP_NET_ADMIN: run as root or grant the capability');
  expect(node.run('nft', 'list', 'tables')).toContain('table ip nodeplane');
});

it('a node that kube-proxy does not serve yet keeps its routes and its network of pods', async () => {
  const node = createNamespace('node');
  const { path: folder } = createFolder('cni');
  const conflist = join(folder, 'conf', '10-nodeplane.conflist');
  mkdirSync(join(folder, 'conf'));
  writeFileSync(conflist, '{ "name": "nodeplane" }');
  node.run('nft', 'add', 'table', 'inet', 'nodeplane-routes');
  const directories = ['bin', 'conf', 'data', 'spool'].flatMap((name) => [`--cni-${name}-dir`, join(folder, name)]);
  const flags = ['--leave-kube-proxy', '--routes', '--cni', ...directories, '--cni-socket', join(folder, 'cni.sock')];
  const cleanup = () => execIn(node)(builtProgram('nodeplane'), ['cleanup', ...flags]);
  expect(await cleanup()).toMatchObject({
    status: 1,
    stderr: expect.stringContaining('kube-proxy, which has no rules'),
  });
  expect(node.run('nft', 'list', 'tables')).toContain('table inet nodeplane-routes');
  expect(existsSync(conflist)).toBe(true);
});

it.each([
  ['nodeplane', 'cleanup'],
  ['nodeplane', 'cleanup', '--dry-run'],
  ['nodeplane', 'cleanup', '--leave-kube-proxy'],
  ['kube-proxy', '--cleanup'],
  ['nodeplane', 'migration'],
] as const)('%s %s %s: nor whoever may not see those of iptables-legacy', async (program, ...args) => {
  const node = createNamespace('node');
  node.run('iptables-legacy', '-t', 'nat', '-N', 'KUBE-SERVICES');
  const words = ['--bounding-set=-net_raw', '--inh-caps=-net_raw', builtProgram(program), ...args];
  const { status, stdout, stderr } = await execIn(node)('setpriv', words);
  // The last one only looks, and says what it cannot tell.
  expect(status).toBe(args[0] === 'migration' ? 0 : 1);
  expect(stdout + stderr).toMatch(
    /iptables-legacy IPv4: .*Permission denied \(you must be root\)"\. It needs .* CAP_NET_RAW/,
  );
  expect(node.run('iptables-legacy-save')).toContain(':KUBE-SERVICES');
});
