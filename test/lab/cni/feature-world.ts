import { type WantedAttachment, wantedBy } from '../../../src/cni/index.ts';
import { journalEntries } from '../../../src/ipam/index.ts';
import { createHost, type Host } from '../host.ts';
import { createNamespace, type TestNamespace } from '../namespace.ts';
import { type BareNode, createNode } from './fixture.ts';
import { callPlugin, type PluginCall, type PluginJson, type PluginOutcome } from './plugin.ts';

/** The tables of ours in `nft list`. */
const TABLES = ['inet', 'bridge'].map((family) => `table ${family} nodeplane-cni`);

/** A node, a host outside that knows no route to the node's pods, and a way to make pods. */
export interface FeatureWorld {
  readonly node: BareNode;
  /** What runs on the node itself. */
  readonly nodeHost: Host;
  readonly outside: Host;
  /** Changes to the network's configuration that all calls get. */
  call(command: string, pod: TestNamespace, change?: object, call?: Partial<PluginCall>): Promise<PluginOutcome>;
  /** An ADD that must succeed; with the pod as a host. */
  addPod(name: string, change?: object, call?: Partial<PluginCall>): Promise<FeaturePod>;
  /** DEL that must succeed. */
  del(pod: FeaturePod | TestNamespace, change?: object): Promise<void>;
  /** What the pods should have in nftables, by the notes their ADDs left. */
  wanted(): WantedAttachment[];
  /** `nft list table` of our tables; '' when there is none. */
  table(): string;
}

export interface FeaturePod extends Host {
  readonly result: PluginJson;
}

/** runtimeConfig with port mappings; without a protocol it is tcp. */
export function mapping(...mappings: readonly object[]): object {
  return { runtimeConfig: { portMappings: mappings } };
}

/** The lines of a ruleset in a fixed order, without what joins elements: the kernel may list them in another one. */
export function linesOf(table: string): string[] {
  return table.split('\n').map(withoutJoin).sort();
}

/** The elements of an attachment in a ruleset, as `nft` writes them. */
export function elementsOf(table: string, container: string): string[] {
  return table
    .split('\n')
    .filter((line) => line.includes(`/${container}/`))
    .map(withoutJoin);
}

function withoutJoin(line: string): string {
  return line.replace(/^\s*(elements = \{ )?/, '').replace(/,$| \}$/, '');
}

export function createFeatureWorld(): FeatureWorld {
  const node = createNode();
  // Where conntrack sees bridged packets, a pod's answer to its neighbour needs no masquerade to come back right.
  for (const name of ['iptables', 'ip6tables']) {
    node.namespace.run('bash', '-c', `f=/proc/sys/net/bridge/bridge-nf-call-${name}; [ ! -e $f ] || echo 0 > $f`);
  }
  const outside = createNamespace('outside');
  connect(node.namespace, outside);
  const call: FeatureWorld['call'] = (command, pod, change = {}, options = {}) =>
    callPlugin(node.namespace, {
      command,
      netns: pod,
      containerId: pod.name,
      config: node.config(change),
      ...options,
    });
  const succeed = async (command: string, ...rest: [TestNamespace, object?, Partial<PluginCall>?]) => {
    const outcome = await call(command, ...rest);
    if (outcome.status !== 0) throw new Error(`${command} failed: ${outcome.stdout}${outcome.stderr}`);
    return outcome;
  };
  return {
    node,
    nodeHost: createHost({ name: 'node', namespace: node.namespace, ips: ['192.0.2.1', '2001:db8::1'] }),
    outside: createHost({ name: 'outside', namespace: outside, ips: ['192.0.2.2', '2001:db8::2'] }),
    call,
    async addPod(name, change, options) {
      const namespace = createNamespace(name);
      const { json } = await succeed('ADD', namespace, change, options);
      const ips = json!.ips!.map(({ address }) => address.replace(/\/.*/, ''));
      return { ...createHost({ name, namespace, ips }), result: json! };
    },
    async del(pod, change) {
      await succeed('DEL', 'namespace' in pod ? pod.namespace : pod, change);
    },
    wanted: () => journalEntries(node.dataDir).flatMap((entry) => wantedBy(entry.network, entry) ?? []),
    table: () =>
      TABLES.map((table) => node.namespace.run('bash', '-c', `nft list ${table} 2>/dev/null || true`)).join(''),
  };
}

/** 192.0.2.0/24 and 2001:db8::/64; the node has two addresses of each. */
function connect(node: TestNamespace, outside: TestNamespace): void {
  node.run('ip', 'link', 'set', 'lo', 'up');
  outside.run('ip', 'link', 'set', 'lo', 'up');
  node.run('ip', 'link', 'add', 'up0', 'type', 'veth', 'peer', 'name', 'eth0', 'netns', outside.name);
  const addresses: [TestNamespace, string, string[]][] = [
    [node, 'up0', ['192.0.2.1/24', '192.0.2.3/24', '2001:db8::1/64', '2001:db8::3/64']],
    [outside, 'eth0', ['192.0.2.2/24', '2001:db8::2/64']],
  ];
  for (const [namespace, link, texts] of addresses) {
    for (const text of texts) {
      const isSecond = text.startsWith('2001:db8::3');
      // The second one is not to be chosen as a source.
      const ofIpv6 = text.includes(':') ? ['nodad', ...(isSecond ? ['preferred_lft', '0'] : [])] : [];
      namespace.run('ip', 'address', 'add', text, 'dev', link, ...ofIpv6);
    }
    namespace.run('ip', 'link', 'set', link, 'up');
  }
}
