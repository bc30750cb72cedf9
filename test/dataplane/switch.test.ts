import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { IpFamily } from '../../src/core/index.ts';
import { makeService, makeSlice } from '../fakes/service-objects.ts';
import {
  type Agent,
  createLab,
  type HeldConnection,
  type Host,
  type LabNode,
  type Pod,
  removeAll,
} from '../lab/lab.ts';
import { PATIENCE } from '../lab/patience.ts';
import { manifestOf, nodeObject, saveManifest } from '../samples/manifests.ts';
import { flagsOf, type ModeName } from './modes.ts';
import { FAMILIES } from './world.ts';

// One node goes through all the modes this kernel has, and back to the first, under constant load.

const VIP = { IPv4: '10.96.1.1', IPv6: 'fd00:96::1' } as const;
const NODE_PORT = 30_080;
const LONG_LIVED = 20;
const NOT_REMOVED = /could not be removed/;
/** Of each of the three loads. On emulated processors more would leave the agent no time to start. */
const PER_SECOND = PATIENCE === 1 ? 50 : 5;

const lab = createLab();
const node: LabNode = lab.addNode({ name: 'node-1' });
const manifests = join(lab.folder, 'manifests');
/** What the kernel holds of a mode, see `traces`, and the modes this kernel can run. */
const KINDS = { 'iptables, nft variant': 'iptables', ipvs: 'ipvs', nftables: 'nftables' } as const;
const modes = (Object.keys(KINDS) as (keyof typeof KINDS)[]).filter((mode) => flagsOf(mode) !== undefined);
let web: Pod[];
let client: Pod;
let outside: Host;
let agent: Agent;

function manifest(): string {
  const name = 'default/web';
  const port = { name: 'main', protocol: 'TCP' } as const;
  const service = makeService(name, {
    type: 'NodePort',
    clusterIP: VIP.IPv4,
    clusterIPs: [VIP.IPv4, VIP.IPv6],
    ports: [{ ...port, port: 80, nodePort: NODE_PORT }],
  });
  const endpoints = (family: IpFamily) => web.map((pod) => ({ addresses: [pod.ip(family)], nodeName: 'node-1' }));
  const slices = FAMILIES.map((addressType) =>
    makeSlice(name, endpoints(addressType), { addressType, ports: [{ ...port, port: 8080 }] }),
  );
  return manifestOf(nodeObject(node), service, ...slices);
}

const start = (mode: ModeName) =>
  node.startAgent({ manifests, flags: ['--cluster-cidr', '10.244.0.0/16,fd00:10:244::/48', ...flagsOf(mode)!] });

/** What each mode keeps in the kernel, to be gone when another has taken over. */
function traces(): string[] {
  const found: string[] = [];
  const look = (kind: string, program: string, args: readonly string[], trace: RegExp) => {
    try {
      if (trace.test(node.namespace.run(program, ...args))) found.push(kind);
    } catch {
      // A kernel or machine without it has no trace of it either.
    }
  };
  look('nftables', 'nft', ['list', 'tables'], /table ip6? nodeplane$/m);
  look('ipvs', 'ip', ['-o', 'link'], /kube-ipvs0/);
  for (const program of ['iptables-nft-save', 'iptables-legacy-save', 'ip6tables-nft-save', 'ip6tables-legacy-save']) {
    look('iptables', program, [], /KUBE-SVC-/);
  }
  return [...new Set(found)];
}

beforeAll(async () => {
  web = ['web-1', 'web-2'].map((name) => node.addPod(name));
  client = node.addPod('client');
  outside = lab.addClient('outside');
  for (const pod of web) await pod.serve({ port: 8080 });
  mkdirSync(manifests);
  saveManifest(manifests, 'all.yaml', manifest());
  agent = await start(modes[0]!);
});
afterAll(async () => {
  await agent.stop();
  removeAll();
});

it(
  'loses no connection, new or old, while the mode is switched',
  async () => {
    const load = [
      await client.startLoad({ ip: VIP.IPv4, port: 80 }, { perSecond: PER_SECOND }),
      await client.startLoad({ ip: VIP.IPv6, port: 80 }, { perSecond: PER_SECOND }),
      await outside.startLoad({ ip: node.ip(), port: NODE_PORT }, { perSecond: PER_SECOND }),
    ];
    const route = [...modes.slice(1), modes[0]!];
    let held = await hold();
    for (const mode of route) {
      await agent.stop();
      agent = await start(mode);
      // Virtual servers of IPVS stay until the last of their connections is forgotten, but get no new one.
      const tracesOfOthers = () => traces().filter((kind) => kind !== KINDS[mode] && kind !== 'ipvs');
      await expect.poll(tracesOfOthers).toEqual([]);
      expect(agent.logs().filter(({ msg }) => NOT_REMOVED.test(String(msg)))).toEqual([]);
      for (const connection of held) expect(await connection.echo()).toMatchObject({ kind: 'answered' });
      for (const connection of held) await connection.close();
      for (const one of load) {
        const { started } = await one.report();
        await expect.poll(async () => (await one.report()).answered).toBeGreaterThan(started);
      }
      held = await hold();
    }
    for (const connection of held) await connection.close();
    for (const one of load) {
      expect((await one.stop()).failures).toEqual([]);
    }
  },
  120_000 * PATIENCE,
);

async function hold(): Promise<HeldConnection[]> {
  const held = await Promise.all(
    Array.from({ length: LONG_LIVED }, (_, n) => client.hold({ ip: n % 2 === 0 ? VIP.IPv4 : VIP.IPv6, port: 80 })),
  );
  for (const { outcome } of held) expect(outcome).toMatchObject({ kind: 'answered' });
  return held;
}
