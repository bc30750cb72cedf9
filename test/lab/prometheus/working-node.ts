import { createServer, type Server } from 'node:http';
import { join } from 'node:path';
import { enterNetns } from '../../../src/sys/index.ts';
import { type ApiObject, apiNode, apiService, apiSlice, FakeApiServer } from '../../fakes/api-server/index.ts';
import { createServedNode, type ServedNode } from '../cni/served-node.ts';
import type { Agent } from '../lab.ts';
import { createNamespace } from '../namespace.ts';
import { type LivePrometheus, startPrometheus } from './live-prometheus.ts';

const API_SERVER_METRICS = 9443;
const WEB = '10.96.0.10';

/** A node on which an agent does all it can: Services, pods' network, routes; scraped by Prometheus, told by an API server. */
export interface WorkingNode {
  readonly served: ServedNode;
  readonly api: FakeApiServer;
  readonly agent: Agent;
  readonly prometheus: LivePrometheus;
  /** Changes objects, attaches and detaches a pod, has others meddle, and lets the API server fail; once. */
  work(): Promise<void>;
  stop(): Promise<void>;
}

/**
 * The calling thread enters the node's namespace for good: the API server is run by it.
 *
 * @param flags of the agent, besides those that switch its parts on
 */
export async function startWorkingNode(gitVersion: string, flags: readonly string[] = []): Promise<WorkingNode> {
  const served = createServedNode();
  const { node, folder } = served;
  enterNetns(node.namespace.path);
  const api = new FakeApiServer();
  api.gitVersion = gitVersion;
  // Lists are requests that end, which a watch never is.
  api.misbehave.streamingLists = false;
  await api.start();
  const kubeconfig = join(folder, 'kubeconfig');
  api.writeKubeconfig(kubeconfig);
  api.apply(
    nodeOf('node-1', node.ip(), node.podCidrs),
    nodeOf('node-2', '192.168.50.2', ['10.244.2.0/24', 'fd00:10:244:2::/64']),
    ...webWith('10.244.2.7'),
  );
  const all = ['--kubeconfig', kubeconfig, '--proxy-mode', 'nftables', '--routes', 'vxlan', ...served.flags];
  all.push('--service-traffic-metrics', '100');
  const agent = await node.startAgent({ flags: [...all, ...flags] });
  const apiServer = showVersion(api);
  const cluster = { cluster: 'lab', instance: 'node-1' };
  const prometheus = startPrometheus(node, folder, [
    { job: 'kube-proxy', target: '127.0.0.1:10249', labels: cluster },
    { job: 'apiserver', target: `127.0.0.1:${API_SERVER_METRICS}`, labels: { cluster: 'lab' } },
  ]);
  let rounds = 0;
  return {
    served,
    api,
    agent,
    prometheus,
    async work() {
      const round = rounds++;
      api.apply(...webWith(`10.244.2.${8 + (round % 100)}`), refusedService(round));
      const pod = createNamespace(`work-${round}`);
      for (const verb of ['ADD', 'DEL']) {
        const { status, stdout } = await served.call(verb, pod);
        if (status !== 0) throw new Error(`${verb} failed: ${stdout}`);
      }
      // A flow to an endpoint that the next round takes away.
      node.namespace.run('bash', '-c', `echo > /dev/udp/${WEB}/80`);
      node.namespace.run('nft', 'flush', 'table', 'ip', 'nodeplane');
      const status = [500, 404, 304][round % 3]!;
      api.misbehave.answers.push({ status });
      // Watches cannot go on where they were: everything is listed again.
      api.compact();
      for (const watch of api.watches()) watch.reset(true);
    },
    async stop() {
      prometheus.stop();
      await agent.stop();
      apiServer.close();
      await api.stop();
    },
  };
}

/** The metric by which every component of Kubernetes tells its release, as the API server has it. */
function showVersion(api: FakeApiServer): Server {
  const server = createServer((_, response) => {
    response.setHeader('Content-Type', 'text/plain; version=0.0.4; charset=utf-8');
    response.end(`kubernetes_build_info{git_version="${api.gitVersion}"} 1\n`);
  });
  return server.listen(API_SERVER_METRICS, '127.0.0.1');
}

function nodeOf(name: string, address: string, podCIDRs: readonly string[]): ApiObject {
  return { ...apiNode(name, address), spec: { podCIDR: podCIDRs[0], podCIDRs } };
}

/** A Service of UDP with one endpoint, which has just changed. */
function webWith(endpoint: string): ApiObject[] {
  const ports = [{ name: 'http', protocol: 'UDP', port: 80, targetPort: 8080 }];
  const slice = { ...apiSlice('demo/web', [endpoint]), ports: [{ name: 'http', protocol: 'UDP', port: 8080 }] };
  const annotations = { 'endpoints.kubernetes.io/last-change-trigger-time': new Date().toISOString() };
  return [
    apiService('demo/web', { spec: { clusterIP: WEB, clusterIPs: [WEB], ports } }),
    { ...slice, metadata: { ...slice.metadata, annotations } },
  ];
}

/** A Service with an external IP that no Service may have, of which its owner is told by an Event. */
function refusedService(number: number): ApiObject {
  const clusterIP = `10.96.1.${number % 250}`;
  return apiService(`demo/refused-${number}`, {
    spec: { clusterIP, clusterIPs: [clusterIP], externalIPs: ['127.0.0.1'] },
  });
}
