import { afterAll, expect, it } from 'vitest';
import { execIn } from '../iptables/fixtures.ts';
import { createNamespace, removeAll } from '../namespace.ts';
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
