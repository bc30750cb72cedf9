import type { PreflightReport } from '../../../src/preflight/index.ts';
import { execIn } from '../iptables/fixtures.ts';
import { createNamespace, type TestNamespace } from '../namespace.ts';
import { builtProgram } from '../programs.ts';

/** What it says, as JSON, of the node that this namespace is. */
export async function preflight(namespace: TestNamespace, ...flags: readonly string[]) {
  const words = ['preflight', '-o', 'json', '--hostname-override=node-1', ...flags];
  const { status, stdout, stderr } = await execIn(namespace)(builtProgram('nodeplane'), words);
  const report = JSON.parse(stdout || 'null') as PreflightReport;
  const found = (check: string) => report.findings.find((finding) => finding.check === check);
  return { status, stderr, report, found };
}

/** A namespace in which nothing is to be found fault with. */
export function cleanNode(label: string): TestNamespace {
  const namespace = createNamespace(`preflight-${label}`);
  namespace.run('ip', 'link', 'set', 'lo', 'up');
  namespace.run('ip', 'link', 'add', 'eth0', 'type', 'veth', 'peer', 'name', 'wire0');
  namespace.run('ip', 'address', 'add', '192.168.50.1/24', 'dev', 'eth0');
  // Without link-local addresses, which take a second to settle.
  for (const name of ['eth0', 'wire0']) namespace.run('ip', 'link', 'set', name, 'addrgenmode', 'none', 'up');
  for (const name of ['net/ipv4/ip_forward', 'net/ipv6/conf/all/forwarding']) {
    namespace.run('sh', '-c', `echo 1 > /proc/sys/${name}`);
  }
  return namespace;
}
