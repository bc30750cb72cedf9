import { spawn } from 'node:child_process';
import { symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { enterNetns } from '../../../src/sys/index.ts';
import { type ApiObject, apiNode, apiService, apiSlice, FakeApiServer } from '../../fakes/api-server/index.ts';
import { createServedNode, installedConfig } from '../cni/served-node.ts';
import { createHost, type Host } from '../host.ts';
import type { Agent } from '../lab.ts';
import { createNamespace } from '../namespace.ts';

/** How a line of shell ended. */
export interface Said {
  readonly status: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** A node that has what the documents speak of: Service shop/web, pods, the agent with all its parts. */
export interface DocumentedNode {
  /** Starts the agent, makes pods the first time, and sends connections to shop/web until it is stopped. */
  start(...flags: string[]): Promise<void>;
  stop(): Promise<void>;
  /** Runs a line as a reader would on the node, with names of examples replaced by those that are there. */
  shell(line: string): Promise<Said>;
  end(): Promise<void>;
}

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));
const VIP = '10.96.0.10';
/** A line of documentation takes as long as it says; `nodeplane trace` 10 s. */
const LONGEST_MS = 60_000;

/** The calling thread enters the node's namespace for good: the API server is run by it. */
export async function createDocumentedNode(): Promise<DocumentedNode> {
  const served = createServedNode();
  const { node, folder } = served;
  for (const name of ['dist', 'deploy', 'demo']) symlinkSync(join(ROOT, name), join(folder, name));
  enterNetns(node.namespace.path);
  const api = new FakeApiServer();
  await api.start();
  const kubeconfig = join(folder, 'kubeconfig');
  api.writeKubeconfig(kubeconfig);
  writeFileSync(join(folder, 'config.conf'), configOf(kubeconfig));
  api.apply(
    nodeOf('node-1', node.ips, node.podCidrs),
    nodeOf('node-2', ['192.168.50.2', 'fd00:50::2'], ['10.244.2.0/24', 'fd00:10:244:2::/64']),
  );
  const common = ['--kubeconfig', kubeconfig, '--cluster-cidr', '10.244.0.0/16,fd00:10:244::/48', ...served.flags];
  common.push('--routes-wireguard-key-file', join(folder, 'wireguard.key'));
  let agent: Agent | undefined;
  let flags: readonly string[] = common;
  let pods: { readonly web: Host; readonly client: Host } | undefined;
  let load: { stop(): Promise<unknown> } | undefined;

  const addPod = async (name: string): Promise<Host> => {
    const namespace = createNamespace(name);
    const portMappings = [{ hostPort: 8000, containerPort: 8080, protocol: 'tcp' }];
    const runtimeConfig = name === 'web' ? { portMappings } : {};
    const config = { ...installedConfig(served.conflist), macspoofchk: true, runtimeConfig };
    const { status, stdout, json } = await served.call('ADD', namespace, { config, containerId: name });
    if (status !== 0) throw new Error(`ADD of ${name} failed: ${stdout}`);
    return createHost({ name, namespace, ips: json!.ips!.map(({ address }) => address.replace(/\/.*/, '')) });
  };
  const addPods = async () => {
    const [web, client] = [await addPod('web'), await addPod('client')];
    await web.serve({ port: 8080 });
    await web.serve({ port: 8080, protocol: 'UDP' });
    api.apply(...shop(web.ip()));
    return { web, client };
  };
  const named = (line: string): string => {
    const client = pods!.client.ip();
    const examples: readonly (readonly [RegExp | string, string])[] = [
      ['AGENT_FLAGS', ['--hostname-override', node.name, ...flags].join(' ')],
      ['CLEANUP_FLAGS', served.flags.filter((flag) => flag !== '--cni').join(' ')],
      [/10\.244\.1\.7|<source>|CLIENT/g, client],
      [/10\.96\.0\.12|VIP/g, VIP],
      ['svc/NAMESPACE/NAME', 'svc/shop/web'],
      [/<destination>|NAMESPACE\/NAME|namespace\/name/g, 'shop/web'],
      [/(?:ADDRESS|ENDPOINT)\b/g, '10.244.2.9'],
      ['<name>', 'node-1'],
      ['<pod CIDR>', '10.244.1.0/24'],
      ["<the agent's pod>", 'kube-proxy-x'],
      ['explain …', 'explain svc/shop/web'],
      ['--kubeconfig …', `--kubeconfig ${kubeconfig}`],
      [/\bMODE\b/g, 'vxlan'],
      [/\bNAME\b/g, 'web'],
      ['/proc/4711/', `/proc/${agent?.pid}/`],
      ['profile?seconds=10', 'profile?seconds=1'],
      ['/var/lib/kube-proxy/config.conf', join(folder, 'config.conf')],
    ];
    return examples.reduce((text, [example, real]) => text.replaceAll(example as string, real), line);
  };
  const stop = async () => {
    await load?.stop();
    await agent?.stop();
    load = agent = undefined;
  };
  return {
    async start(...more) {
      flags = [...common, ...more];
      agent = await node.startAgent({ flags: [...flags, '--profiling', '--localhost-nodeports'] });
      pods ??= await addPods();
      const { client } = pods;
      // What is begun before the rules are there is no example of anything.
      for (const port of [80, 443])
        await until(async () => (await client.connect({ ip: VIP, port })).kind === 'answered');
      load = await client.startLoad({ ip: VIP, port: 80 }, { perSecond: 10 });
    },
    stop,
    shell: (line) => runShell(node.namespace.name, folder, named(line)),
    async end() {
      await stop();
      await api.stop();
    },
  };
}

async function until(condition: () => Promise<boolean>): Promise<void> {
  const deadline = performance.now() + LONGEST_MS;
  while (!(await condition())) {
    if (performance.now() > deadline) throw new Error('Service shop/web does not answer');
    await delay(50);
  }
}

function runShell(namespace: string, folder: string, line: string): Promise<Said> {
  const child = spawn('ip', ['netns', 'exec', namespace, 'bash', '-o', 'pipefail', '-c', line], {
    cwd: folder,
    env: {
      PATH: [join(ROOT, 'dist'), join(ROOT, '.cache/kubectl'), '/usr/sbin:/usr/bin:/sbin:/bin'].join(':'),
      // What they keep of their own goes with the lab.
      HOME: folder,
      NSTAT_HISTORY: join(folder, 'nstat'),
      XTABLES_LOCKFILE: join(folder, 'xtables.lock'),
      EDITOR: 'false',
    },
    stdio: ['ignore', 'pipe', 'pipe'],
    timeout: LONGEST_MS,
  });
  let stdout = '';
  let stderr = '';
  child.stdout.setEncoding('utf8').on('data', (text) => (stdout += text));
  child.stderr.setEncoding('utf8').on('data', (text) => (stderr += text));
  return new Promise((resolve, reject) => {
    child.on('error', reject);
    child.on('close', (status) => resolve({ status, stdout, stderr }));
  });
}

/** As kubeadm writes it, in as much as it matters here. */
function configOf(kubeconfig: string): string {
  return `apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
clusterCIDR: 10.244.0.0/16
clientConnection: { kubeconfig: ${kubeconfig} }
`;
}

function nodeOf(name: string, ips: readonly string[], podCIDRs: readonly string[]): ApiObject {
  const addresses = ips.map((address) => ({ type: 'InternalIP', address }));
  return { ...apiNode(name), spec: { podCIDR: podCIDRs[0], podCIDRs }, status: { addresses } };
}

/** Services shop/web and shop/dns, with the numbers that the documents give them. */
function shop(endpoint: string): ApiObject[] {
  const ports = [
    { name: 'http', protocol: 'TCP', port: 80, targetPort: 8080, nodePort: 30080 },
    { name: 'https', protocol: 'TCP', port: 443, targetPort: 8080, nodePort: 30443 },
    { name: 'dns', protocol: 'UDP', port: 53, targetPort: 8080, nodePort: 30053 },
  ];
  const dns = { clusterIP: '10.96.0.11', clusterIPs: ['10.96.0.11'], ports: [{ ...ports[2], nodePort: undefined }] };
  const sliceOf = (key: string, of: readonly { name: string; protocol: string }[]) => ({
    ...apiSlice(key, [endpoint]),
    ports: of.map(({ name, protocol }) => ({ name, protocol, port: 8080 })),
  });
  return [
    apiService('shop/web', { spec: { type: 'NodePort', clusterIP: VIP, clusterIPs: [VIP], ports } }),
    sliceOf('shop/web', ports),
    apiService('shop/dns', { spec: dns }),
    sliceOf('shop/dns', ports.slice(2)),
  ];
}
