import { spawnSync } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { iptablesTool } from '../../../src/proxy/rules/index.ts';
import { saveManifest } from '../../samples/manifests.ts';
import { CASES, execIn } from '../iptables/fixtures.ts';
import {
  KUBE_PROXY_OBJECTS,
  type KubeProxyKind,
  type KubeProxyNode,
  startKubeProxy,
  withAddresses,
} from '../kube-proxy-1.36.2.ts';
import {
  type Agent,
  createLab,
  type HeldConnection,
  type Host,
  type LabNode,
  type Load,
  type Pod,
  removeAll,
} from '../lab.ts';
import { PATIENCE } from '../patience.ts';
import { builtProgram } from '../programs.ts';

// A node moves from the rules of a kube-proxy 1.36.2 to nodeplane and back, under constant load, in each of their modes.

const WEB = { ip: '10.96.10.1', port: 80 };
const DNS = { ip: '10.96.10.1', port: 53, protocol: 'UDP' } as const;
const STICKY = { ip: '10.96.10.6', port: 80 };
/** Chains of its endpoints of web, and its tables. */
const ONLY_KUBE_PROXY = /KUBE-SEP-(?:SI62D7XAGVO2CP3X|S43XANNWXD6645P5)|table ip6? kube-proxy/;
const HELD = 6;
const PER_SECOND = PATIENCE === 1 ? 40 : 5;

/** All that is in iptables and nf_tables, but for counters, handles and the order of jumps in built-in chains. */
async function rules(node: LabNode): Promise<Record<string, readonly string[]>> {
  const exec = execIn(node.namespace);
  const found: Record<string, readonly string[]> = {};
  for (const [family, variant] of CASES) {
    for (const [table, chains] of await iptablesTool(family, variant, exec).saveAll()) {
      for (const [name, { rules: lines }] of chains) {
        const isBuiltIn = /^[A-Z]+$/.test(name);
        if (!isBuiltIn || lines.length > 0)
          found[`${family} ${variant} ${table} ${name}`] = isBuiltIn ? lines.toSorted() : lines;
      }
    }
  }
  for (const line of node.namespace.run('nft', 'list', 'tables').split('\n')) {
    const [, family, name] = /^table (\S+) (\S+)$/.exec(line) ?? [];
    // Those of iptables-nft were read above; what clients are remembered by changes with every packet.
    if (family === undefined || name === undefined || /^(?:filter|nat|mangle|raw|security)$/.test(name)) continue;
    const text = node.namespace.run('nft', '-s', '-nn', 'list', 'table', family, name);
    found[`table ${family} ${name}`] = text
      .replace(/(set affinity-\S+ \{[^{}]*?)elements = \{[^{}]*\}/g, '$1')
      .split('\n')
      .map((one) => one.trim())
      .filter(Boolean)
      .toSorted();
  }
  return found;
}

/** Goes from a kube-proxy to a mode of ours and back. Each move has a test file, and so a lab, of its own. */
export function testMove(source: KubeProxyKind, mode: 'iptables' | 'nftables'): void {
  const lab = createLab();
  const node = lab.addNode({ name: 'n1' });
  const manifests = join(lab.folder, 'manifests');
  let client: Pod;
  let outside: Host;
  let kubeProxy: KubeProxyNode;
  let agent: Agent | undefined;
  let load: Load[] = [];
  const nodePort = () => ({ ip: node.ip(), port: 30_080 });
  const nodeplane = (...args: string[]) =>
    spawnSync('ip', ['netns', 'exec', node.namespace.name, builtProgram('nodeplane'), ...args], { encoding: 'utf8' });
  const hold = async (): Promise<HeldConnection[]> => {
    const held = await Promise.all(
      Array.from({ length: HELD }, (_, n) => (n % 2 ? outside.hold(nodePort()) : client.hold(WEB))),
    );
    for (const { outcome } of held) expect(outcome).toMatchObject({ kind: 'answered' });
    return held;
  };
  /** What `nodeplane migration` says of the node. */
  const stateOf = () =>
    JSON.parse(nodeplane('migration', '-o', 'json', '--hostname-override', 'n1', '--manifests', manifests).stdout)
      .standing;

  beforeAll(async () => {
    const addresses: Record<string, string> = { '10.199.0.2': node.ip() };
    const endpoints = ['web', 'np', 'sticky'].flatMap((name, index) =>
      [1, 2].map((number) => [`${name}-${number}`, `10.244.${number}.${[10, 20, 50][index]}`] as const),
    );
    for (const [name, address] of endpoints) {
      const pod = node.addPod(name);
      await pod.serve({ port: 8080 });
      if (name.startsWith('web')) await pod.serve({ port: 5353, protocol: 'UDP' });
      addresses[address] = pod.ip();
    }
    client = node.addPod('client');
    outside = lab.addClient('outside');
    kubeProxy = { namespace: node.namespace, addresses };
    mkdirSync(manifests);
    // kube-proxy was told the address of its node.
    const status = 'status: {addresses: [{type: InternalIP, address: 10.199.0.2}]}';
    const objects = KUBE_PROXY_OBJECTS.replace(/^spec: \{podCIDR: 10\.244\.1\.0.*$/m, `$&\n${status}`);
    saveManifest(manifests, 'objects.yaml', withAddresses(objects, kubeProxy));
  }, 60_000 * PATIENCE);
  afterEach(async () => {
    await agent?.stop();
    for (const one of load.splice(0)) await one.stop();
    nodeplane('cleanup');
  });
  afterAll(removeAll);

  it(
    `from kube-proxy in mode ${source} to mode ${mode} and back, and no connection is lost`,
    async () => {
      await startKubeProxy(kubeProxy, source);
      const before = await rules(node);
      expect(stateOf()).toBe('not begun');
      load = [
        await client.startLoad(WEB, { perSecond: PER_SECOND }),
        await client.startLoad(STICKY, { perSecond: PER_SECOND }),
        await client.startLoad(DNS, { perSecond: PER_SECOND }),
        await outside.startLoad(nodePort(), { perSecond: PER_SECOND }),
      ];
      const goesOn = async () => {
        for (const one of load) {
          const { started } = await one.report();
          await expect.poll(async () => (await one.report()).answered).toBeGreaterThan(started + PER_SECOND / 4);
        }
      };
      const stillThere = async (held: readonly HeldConnection[]) => {
        for (const connection of held) expect(await connection.echo()).toMatchObject({ kind: 'answered' });
      };
      const phases: [string, number][] = [];
      const begin = (phase: string) => phases.push([phase, Date.now()]);
      const ofKubeProxy = await hold();
      await goesOn();
      begin('agent killed on the way');

      const options = { manifests, flags: ['--proxy-mode', mode, '--cluster-cidr', '10.244.0.0/16'] };
      // Killed on the way, it is as if it goes on where it was.
      agent = await node.startAgent({ ...options, until: 'live' });
      await agent.kill();
      begin('agent starts');
      agent = await node.startAgent(options);
      // What kube-proxy alone writes is gone.
      await expect
        .poll(async () => Object.keys(await rules(node)).filter((name) => ONLY_KUBE_PROXY.test(name)))
        .toEqual([]);
      await goesOn();
      await stillThere(ofKubeProxy);
      begin('agent works');
      expect(stateOf()).toBe('nodeplane');
      const ofNodeplane = await hold();
      await agent.stop();
      await goesOn();

      begin('kube-proxy starts');
      await startKubeProxy(kubeProxy, source);
      begin('clean-up');
      expect(nodeplane('cleanup', '--leave-kube-proxy')).toMatchObject({ status: 0, stderr: '' });
      await goesOn();
      for (const held of [ofKubeProxy, ofNodeplane]) {
        await stillThere(held);
        for (const connection of held) await connection.close();
      }
      expect(await rules(node)).toEqual(before);
      expect(stateOf()).toBe('not begun');
      const failures: { load: number; phase: string; kind: string }[] = [];
      for (const [index, one] of load.splice(0).entries()) {
        for (const { startedAt, outcome } of (await one.stop()).failures) {
          const phase = phases.findLast(([, since]) => since <= startedAt)?.[0] ?? 'begin';
          failures.push({ load: index, phase, kind: outcome.kind });
        }
      }
      // kube-proxy removes rules of iptables before it writes tables of nftables: that gap is its own, and so is a flow of UDP
      // that conntrack remembers from it.
      const gap = source === 'nftables' && mode === 'iptables' ? /^(?:kube-proxy starts|clean-up)$/ : /^$/;
      expect(failures.filter(({ phase }) => !gap.test(phase))).toEqual([]);
    },
    120_000 * PATIENCE,
  );
}
