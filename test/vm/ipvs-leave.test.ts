import { spawnSync } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { iptablesTool } from '../../src/proxy/rules/index.ts';
import { CASES, execIn } from '../lab/iptables/fixtures.ts';
import { KUBE_PROXY_OBJECTS, type KubeProxyNode, startKubeProxy, withAddresses } from '../lab/kube-proxy-1.36.2.ts';
import { createLab, type LabNode, type Pod, removeAll, tally } from '../lab/lab.ts';
import { builtProgram } from '../lab/programs.ts';
import { saveManifest } from '../samples/manifests.ts';

// What mode ipvs leaves in the kernel: listed by a dry run as it then goes, and not in the way of a kube-proxy that comes back.

const lab = createLab();
const node: LabNode = lab.addNode({ name: 'n1' });
const manifests = join(lab.folder, 'manifests');
const WEB = { ip: '10.96.10.1', port: 80 };
let client: Pod;
let kubeProxy: KubeProxyNode;

const run = (...args: string[]) => node.namespace.run(args[0]!, ...args.slice(1));
const nodeplane = (...args: string[]) => {
  const words = ['netns', 'exec', node.namespace.name, builtProgram('nodeplane'), ...args];
  const { status, stdout, stderr } = spawnSync('ip', words, { encoding: 'utf8' });
  expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
  return stdout;
};

beforeAll(async () => {
  const addresses: Record<string, string> = { '10.199.0.2': node.ip() };
  for (const [name, address] of Object.entries({ 'web-1': '10.244.1.10', 'web-2': '10.244.2.10' })) {
    const pod = node.addPod(name);
    await pod.serve({ port: 8080 });
    addresses[address] = pod.ip();
  }
  client = node.addPod('client');
  kubeProxy = { namespace: node.namespace, addresses };
  mkdirSync(manifests);
  saveManifest(manifests, 'objects.yaml', withAddresses(KUBE_PROXY_OBJECTS, kubeProxy));
});
beforeEach(async () => {
  const agent = await node.startAgent({
    manifests,
    flags: ['--proxy-mode', 'ipvs', '--cluster-cidr', '10.244.0.0/16'],
  });
  await agent.stop();
});
afterAll(removeAll);

/** All there is of mode ipvs, in the words of the dry run. */
async function objects(): Promise<string[]> {
  const found: string[] = [];
  for (const [family, variant] of CASES) {
    for (const [table, chains] of await iptablesTool(family, variant, execIn(node.namespace)).saveAll()) {
      for (const name of chains.keys()) found.push(`iptables-${variant} ${family}, table ${table}, chain ${name}`);
    }
  }
  for (const line of run('ipvsadm', '-Sn').split('\n')) {
    const [, kind, address] = /^-A -(\w) (\S+)/.exec(line) ?? [];
    if (address === undefined) continue;
    const protocol = { t: 'TCP', u: 'UDP' }[kind!];
    const key = protocol ? `${address}/${protocol}` : `mark 0x${Number(address).toString(16)}`;
    found.push(`IPVS IPv4, virtual server ${key}`);
  }
  found.push(
    ...run('ipset', 'list', '-n')
      .split('\n')
      .filter(Boolean)
      .map((name) => `ipset ${name}`),
  );
  for (const line of run('ip', '-o', 'address').split('\n')) {
    const [, address] = /kube-ipvs0 +inet6? ([^/ ]+)/.exec(line) ?? [];
    if (address && !address.startsWith('fe80')) found.push(`address ${address} of kube-ipvs0`);
  }
  if (run('ip', '-o', 'link').includes('kube-ipvs0')) found.push('device kube-ipvs0');
  return found;
}

const answers = async () => {
  const { failures, answers: by } = tally(await client.connectMany(WEB, 12));
  expect(failures).toEqual({});
  return Object.keys(by).sort();
};

it('a dry run lists exactly what then goes', async () => {
  const before = await objects();
  const listed = nodeplane('cleanup', '--dry-run', '--mode', 'ipvs').split('\n').filter(Boolean);
  expect(await objects()).toEqual(before);
  nodeplane('cleanup', '--mode', 'ipvs');
  const after = new Set(await objects());
  const said = listed.map((line) => /^remove (.*) \([^()]+\)$/.exec(line)?.[1] ?? line);
  // Jumps in built-in chains are listed too, as rules of chains that stay.
  expect(
    said
      .filter((object) => !object.includes(', rule "'))
      .map((one) => one.toLowerCase())
      .sort(),
  ).toEqual(
    before
      .filter((object) => !after.has(object))
      .map((one) => one.toLowerCase())
      .sort(),
  );
  expect([...after].filter((object) => /IPVS|ipset|kube-ipvs0/.test(object))).toEqual([]);
});

it('a kube-proxy in mode iptables has the node to itself afterwards', async () => {
  await startKubeProxy(kubeProxy, 'iptables-nft');
  nodeplane('cleanup', '--leave-kube-proxy');
  expect(await answers()).toEqual(['web-1', 'web-2']);
  expect((await objects()).filter((object) => /IPVS|ipset|kube-ipvs0/.test(object))).toEqual([]);
  nodeplane('cleanup');
});

it('a kube-proxy in mode ipvs keeps its own names, and nothing of ours acts on packets before it', async () => {
  // Its rules are those of the same names that are there.
  const before = await objects();
  nodeplane('cleanup', '--leave-kube-proxy');
  const gone = before.filter((object) => /table mangle, chain KUBE-/.test(object));
  expect(gone.length).toBeGreaterThan(0);
  const after = await objects();
  expect(before.filter((object) => !after.includes(object))).toEqual(gone);
  expect(await answers()).toEqual(['web-1', 'web-2']);
  nodeplane('cleanup');
});
