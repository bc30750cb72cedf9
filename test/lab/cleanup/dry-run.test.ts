import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { iptablesTool } from '../../../src/proxy/rules/index.ts';
import { DEVICE_ALIAS, RTPROT_NODEPLANE } from '../../../src/routes/index.ts';
import { CASES, execIn, useOwnLockFile } from '../iptables/fixtures.ts';
import { createFolder, createNamespace, removeAll, type TestNamespace } from '../namespace.ts';
import { builtProgram } from '../programs.ts';

useOwnLockFile();
afterAll(removeAll);

const KUBE_PROXY = readFileSync(new URL('../../golden/iptables/kube-proxy.save', import.meta.url), 'utf8');

/** What there is of what a clean-up may touch, in the words of the dry run; rules in chains one by one. */
async function objectsOf(namespace: TestNamespace, files: readonly string[] = []): Promise<ReadonlySet<string>> {
  const exec = execIn(namespace);
  const found = new Set<string>();
  for (const [family, variant] of CASES) {
    for (const [table, chains] of await iptablesTool(family, variant, exec).saveAll()) {
      for (const [name, { rules }] of chains) {
        const chain = `iptables-${variant} ${family}, table ${table}, chain ${name}`;
        found.add(chain);
        for (const rule of rules) found.add(`${chain}, rule "${rule}"`);
      }
    }
  }
  const { nftables } = JSON.parse(namespace.run('nft', '-j', 'list', 'tables')) as {
    nftables: { table?: { family: string; name: string } }[];
  };
  for (const { table } of nftables) if (table) found.add(`nftables, table ${table.family} ${table.name}`);
  for (const line of namespace.run('ip', 'route').split('\n'))
    if (line !== '') found.add(`routes IPv4, ${line.split(' ')[0]}`);
  for (const line of namespace.run('ip', '-o', 'link').split('\n')) {
    const name = /^\d+: ([^:@]+)/.exec(line)?.[1];
    if (name) found.add(`routes IPv4, device ${name}`);
  }
  for (const path of files) if (existsSync(path)) found.add(path);
  return found;
}

async function cleanup(namespace: TestNamespace, ...flags: readonly string[]) {
  // With a /run of its own: the lock of the machine's plugins lies there, and goes with the plugin.
  const inOwnRun = ['--mount', 'sh', '-c', 'mount -t tmpfs tmpfs /run && exec "$@"', 'sh'];
  const words = [...inOwnRun, builtProgram('nodeplane'), 'cleanup', ...flags];
  const result = await execIn(namespace)('unshare', words);
  expect(result).toMatchObject({ status: 0, stderr: '' });
  return result.stdout.split('\n').filter(Boolean);
}

/** Compares what a dry run lists with what a real one then changes. */
async function compare(namespace: TestNamespace, flags: readonly string[], files: readonly string[] = []) {
  const before = await objectsOf(namespace, files);
  const said = (await cleanup(namespace, '--dry-run', ...flags)).map(
    (line) => /^(remove|empty) (.*) \(([^()]+)\)$/.exec(line)!,
  );
  expect(await objectsOf(namespace, files)).toEqual(before);
  await cleanup(namespace, ...flags);
  const after = await objectsOf(namespace, files);
  const gone = [...before].filter((object) => !after.has(object));
  const chainOf = (object: string) => object.replace(/, rule ".*$/s, '');
  const emptied = said.filter(([, verb]) => verb === 'empty').map(([, , object]) => object!);
  // The rules of a chain that goes, or is emptied, are not listed one by one.
  const isPart = (object: string) => {
    const chain = chainOf(object);
    return chain !== object && (!after.has(chain) || emptied.includes(chain));
  };
  expect(
    said
      .filter(([, verb]) => verb === 'remove')
      .map(([, , object]) => object!.replace(/^(routes IPv4, \S+) .*(?<!device \S+)$/, '$1'))
      .sort(),
  ).toEqual(gone.filter((object) => !isPart(object)).sort());
  for (const chain of emptied) {
    expect(after.has(chain)).toBe(true);
    expect([...after].some((object) => object.startsWith(`${chain}, rule`))).toBe(false);
  }
  return { gone, emptied, left: [...after] };
}

it.each(['nft', 'legacy'] as const)(
  'lists exactly what goes: kube-proxy’s rules in iptables-%s, beside others’',
  async (variant) => {
    const node = createNamespace(`dry-${variant}`);
    expect(await execIn(node)(`iptables-${variant}-restore`, [], { input: KUBE_PROXY })).toMatchObject({ status: 0 });
    node.run(`iptables-${variant}`, '-t', 'nat', '-A', 'SITE-NAT', '-j', 'KUBE-MARK-MASQ');
    const { gone, emptied, left } = await compare(node, []);
    expect(gone.length).toBeGreaterThan(20);
    expect(emptied).toEqual([`iptables-${variant} IPv4, table nat, chain KUBE-MARK-MASQ`]);
    expect(left.some((object) => object.includes('SITE-NAT'))).toBe(true);
    expect(await cleanup(node, '--dry-run')).toEqual([expect.stringContaining('KUBE-MARK-MASQ')]);
  },
);

it('lists exactly what goes: tables of nodeplane and kube-proxy, by mode, and no other', async () => {
  const node = createNamespace('dry-nftables');
  for (const table of [
    'ip nodeplane',
    'ip6 nodeplane',
    'ip kube-proxy',
    'ip site',
    'inet nodeplane',
    'ip nodeplane-localhost',
  ])
    node.run('nft', 'add', 'table', ...table.split(' '));
  expect(await cleanup(node, '--dry-run', '--mode', 'iptables')).toEqual(['There is nothing to remove']);
  const { gone } = await compare(node, ['--mode', 'nftables']);
  expect(gone.sort()).toEqual([
    'nftables, table ip kube-proxy',
    'nftables, table ip nodeplane',
    'nftables, table ip6 nodeplane',
  ]);
  expect((await compare(node, [])).gone).toEqual(['nftables, table ip nodeplane-localhost']);
  expect(await cleanup(node, '--dry-run')).toEqual(['There is nothing to remove']);
});

it('lists exactly what goes: routes, and the plugin with its state', async () => {
  const node = createNamespace('dry-routes');
  node.run('ip', 'link', 'add', 'eth0', 'type', 'veth', 'peer', 'name', 'wire0');
  node.run('ip', 'address', 'add', '192.168.50.1/24', 'dev', 'eth0');
  for (const name of ['eth0', 'wire0']) node.run('ip', 'link', 'set', name, 'up');
  node.run('ip', ...'link add nodeplane-v4 type vxlan id 1 dstport 8472 dev eth0'.split(' '));
  node.run('ip', 'link', 'set', 'nodeplane-v4', 'alias', DEVICE_ALIAS);
  node.run('ip', 'route', 'add', '10.244.2.0/24', 'via', '192.168.50.2', 'proto', String(RTPROT_NODEPLANE));
  node.run('ip', 'route', 'add', '10.9.0.0/16', 'via', '192.168.50.3');
  node.run('nft', 'add', 'table', 'inet', 'nodeplane-cni');
  const folder = createFolder('dry').path;
  const at = (name: string) => join(folder, name);
  const files = [at('bin/nodeplane-cni'), at('net.d/10-nodeplane.conflist'), at('bin/other')];
  for (const name of ['bin', 'net.d', 'data']) mkdirSync(at(name));
  writeFileSync(files[0]!, 'plugin');
  writeFileSync(files[1]!, '{"name":"nodeplane"}');
  writeFileSync(files[2]!, 'other');
  const flags = [
    '--routes',
    '--cni',
    `--cni-bin-dir=${at('bin')}`,
    `--cni-conf-dir=${at('net.d')}`,
    `--cni-data-dir=${at('data')}`,
    `--cni-socket=${at('cni.sock')}`,
    `--cni-spool-dir=${at('spool')}`,
  ];
  const { gone } = await compare(node, flags, files);
  expect(gone).toEqual(
    expect.arrayContaining([
      files[0],
      files[1],
      'nftables, table inet nodeplane-cni',
      'routes IPv4, 10.244.2.0/24',
      'routes IPv4, device nodeplane-v4',
    ]),
  );
  expect(existsSync(files[2]!)).toBe(true);
});
