import { join } from 'node:path';
import { enterNetns } from '../../../src/sys/index.ts';
import { grantedBy, renderWith, SYSTEM_NODE_PROXIER } from '../../deploy/render.ts';
import { type ApiObject, FakeApiServer } from '../../fakes/api-server/index.ts';
import { callPlugin, type PluginOutcome } from '../cni/plugin.ts';
import { installedConfig } from '../cni/served-node.ts';
import { createHost, type Host } from '../host.ts';
import { type Agent, createLab, type LabNode } from '../lab.ts';
import { createNamespace, type TestNamespace } from '../namespace.ts';
import { builtProgram } from '../programs.ts';

/** A node with an agent that serves the runtime, reads an API server, and has its pods' addresses from there. */
export interface PoolNode {
  readonly node: LabNode;
  readonly dataDir: string;
  /** The flags of its agent that `nodeplane ipam` takes, too. */
  readonly ipamFlags: readonly string[];
  start(...flags: readonly string[]): Promise<Agent>;
  /** A CNI request for a pod's namespace; ADD is tried again while the agent says so. */
  call(command: string, pod: TestNamespace): Promise<PluginOutcome>;
  /** A pod that can serve and connect. */
  addPod(name: string): Promise<Host>;
  /** An attached namespace, and no more. */
  fill(): Promise<TestNamespace>;
}

export interface PoolCluster {
  readonly api: FakeApiServer;
  readonly nodes: readonly [PoolNode, PoolNode];
  /** Tells what the Node object of a node says, under a new UID after it was deleted. */
  register(node: PoolNode, podCidrs?: readonly string[]): void;
  /** The ranges that confirmed blocks give a node, by the objects. */
  blocksOf(node: PoolNode): readonly string[];
}

/** Two nodes on one link, and an API server that they reach there. From here on this thread lives in the wire's namespace. */
export async function createPoolCluster(): Promise<PoolCluster> {
  const lab = createLab({ podRoutes: false });
  const nodes = [lab.addNode({ name: 'node-1' }), lab.addNode({ name: 'node-2' })] as const;
  enterNetns(lab.wire.namespace.path);
  const api = new FakeApiServer({ address: lab.wire.gateways[0]! });
  await api.start();
  api.misbehave.rules = [
    ...SYSTEM_NODE_PROXIER,
    ...grantedBy(renderWith({ resources: ['overlays/full/nftables'], components: ['components/pools'] })),
  ];
  const kubeconfig = join(lab.folder, 'kubeconfig');
  api.writeKubeconfig(kubeconfig);
  const pools = nodes.map((node) => createPoolNode(node, lab.folder, kubeconfig)) as [PoolNode, PoolNode];
  const cluster: PoolCluster = {
    api,
    nodes: pools,
    register({ node }, podCidrs) {
      const addresses = node.ips.map((address) => ({ type: 'InternalIP', address }));
      const spec = podCidrs ? { podCIDR: podCidrs[0], podCIDRs: podCidrs } : {};
      api.apply({ apiVersion: 'v1', kind: 'Node', metadata: { name: node.name }, spec, status: { addresses } });
    },
    blocksOf: ({ node }) =>
      (api.objects('PodCIDRBlock') as readonly (ApiObject & { readonly spec: Record<string, string> })[])
        .filter(({ spec }) => spec.node === node.name && spec.state === 'confirmed')
        .map(({ spec }) => spec.cidr!),
  };
  return cluster;
}

function createPoolNode(node: LabNode, labFolder: string, kubeconfig: string): PoolNode {
  const folder = join(labFolder, `host-${node.name}`);
  const [binDir, confDir, dataDir, spoolDir] = ['bin', 'net.d', 'data', 'spool'].map((name) => join(folder, name)) as [
    string,
    string,
    string,
    string,
  ];
  const socket = join(folder, 'run', 'cni.sock');
  const ipamFlags = ['--kubeconfig', kubeconfig, '--cni-data-dir', dataDir];
  const flags = [...ipamFlags, '--cni', '--cni-bin-dir', binDir, '--cni-conf-dir', confDir];
  flags.push('--cni-socket', socket, '--cni-spool-dir', spoolDir, '--proxy-mode', 'nftables');
  let pods = 0;
  const call = (command: string, pod: TestNamespace) =>
    callPlugin(node.namespace, {
      command,
      config: installedConfig(join(confDir, '10-nodeplane.conflist')),
      program: builtProgram('nodeplane-cni-shim'),
      netns: pod,
      containerId: pod.name,
      env: { NODEPLANE_CNI_SOCKET: socket, NODEPLANE_CNI_SPOOL: spoolDir },
    });
  const attach = async (name: string) => {
    const namespace = createNamespace(name);
    const { json, status } = await call('ADD', namespace);
    if (status !== 0) throw new Error(`ADD failed: ${JSON.stringify(json)}`);
    return { namespace, ips: json!.ips!.map(({ address }) => address.replace(/\/.*/, '')) };
  };
  return {
    node,
    dataDir,
    ipamFlags,
    start: (...more) => node.startAgent({ flags: [...flags, ...more] }),
    call,
    async addPod(name) {
      const { namespace, ips } = await attach(name);
      return createHost({ name, namespace, ips });
    },
    fill: async () => (await attach(`pod-${++pods}`)).namespace,
  };
}
