/**
 * The lab: clusters made of network namespaces on one machine, with real packets, the real CNI plugin and the real agent.
 *
 * ```ts
 * const lab = createLab();
 * const node = lab.addNode({ name: 'node-1' });
 * const web = node.addPod('web-1');
 * await web.serve({ port: 8080 });
 * expect(await lab.addClient('outside').connect({ ip: node.ip(), port: 30080 })).toMatchObject({ kind: 'refused' });
 * ```
 *
 * - A *host* (host.ts) is whatever sends and serves: a pod, an outside client, or a node's own processes. `connect` tells
 *   who answered and which source address they saw, or `refused`, `unreachable`, `broken`, `timeout`. Where a drop is
 *   expected, pass a `timeoutMs` well below the default of two seconds.
 * - A *node* (node.ts) adds pods through `dist/nodeplane-cni` and runs `dist/nodeplane agent`: build first.
 * - The *wire* (wire.ts) is the network between nodes and clients. Clients know no route but the wire; see `addRoute`.
 *
 * Every address is there in IPv4 and IPv6. Names are unique to the process, so labs may run side by side. Call
 * `afterAll(removeAll)` (namespace.ts): it ends threads and processes and removes namespaces and folders. What a killed
 * run leaves is removed by the next one.
 */
import type { ConfList } from './cni-runtime.ts';
import { createHost, type Host } from './host.ts';
import { createFolder, createNamespace } from './namespace.ts';
import { createLabNode, type LabNode } from './node.ts';
import { createFarWire, createWire, ip, type Wire } from './wire.ts';

export type { Agent, AgentOptions } from './agent-process.ts';
export type { Attachment, CniResult, ConfList } from './cni-runtime.ts';
export type { Flow, HeldConnection, Host, Load } from './host.ts';
export type { CountedRule, IptablesVariant } from './iptables-rules.ts';
export { removeAll } from './namespace.ts';
export type { LabNode } from './node.ts';
export type { Pod } from './pod.ts';
export type { ConnectOptions, FlowReport, LoadOptions, LoadReport, Outcome, Target } from './traffic/protocol.ts';
export { type Tally, tally } from './traffic/tally.ts';

/** One cluster with its surroundings. */
export interface Lab {
  readonly wire: Wire;
  /** A folder for the lab's files: manifests, logs, address reservations. Removed with the lab. */
  readonly folder: string;
  /** Adds a node, with routes between its pods and those of the nodes already there unless the lab is to have none. */
  addNode(options: NodeOptions): LabNode;
  /** Adds a machine outside the cluster, plugged into the wire. */
  addClient(name: string, options?: { readonly ips?: readonly string[] }): Host;
}

/** A node; what is left out follows from its number N, counted from 1. */
export interface NodeOptions {
  readonly name: string;
  /** @default 192.168.50.N and fd00:50::N; 60 in place of 50 where it is far */
  readonly ips?: readonly string[];
  /** @default 10.244.N.0/24 and fd00:10:244:N::/64 */
  readonly podCidrs?: readonly string[];
  /** It is plugged into a network of its own behind a router, which carries 192.168.60.0/24 and fd00:60::/64. @default false */
  readonly far?: boolean;
  /** The network configuration of its pods. @default a bridge `cni0` with the pod CIDRs */
  readonly conflist?: ConfList;
}

/** How a lab is named and where it keeps its files. */
export interface LabOptions {
  /** Fixed beginning of the namespaces' names, for a lab that may outlive its process. @default unique to the process */
  readonly namePrefix?: string;
  /** @default a new temporary folder */
  readonly folder?: string;
  /** Whether nodes have routes to each other's pods from the start. @default true */
  readonly podRoutes?: boolean;
}

/** Makes an empty lab: a wire and a folder. Needs root. */
export function createLab(options: LabOptions = {}): Lab {
  const namespace = (label: string) =>
    createNamespace(label, options.namePrefix === undefined ? {} : { fixedPrefix: options.namePrefix });
  const folder = options.folder ?? createFolder('lab').path;
  const wire = createWire(namespace('wire'));
  const nodes: LabNode[] = [];
  let clients = 0;
  let farWire: Wire | undefined;
  const far = () => {
    farWire ??= createFarWire(wire);
    return farWire;
  };
  return {
    wire,
    folder,
    addNode({ name, conflist, ...given }) {
      const number = nodes.length + 1;
      const segment = given.far ? 60 : 50;
      const node = createLabNode({
        name,
        namespace: namespace(name),
        wire: given.far ? far() : wire,
        ips: given.ips ?? [`192.168.${segment}.${number}`, `fd00:${segment}::${number}`],
        podCidrs: given.podCidrs ?? [`10.244.${number}.0/24`, `fd00:10:244:${number}::/64`],
        conflist,
        folder,
        podNamespace: namespace,
      });
      for (const other of options.podRoutes === false ? [] : nodes) {
        for (const cidr of node.podCidrs) addRoute(other, cidr, node);
        for (const cidr of other.podCidrs) addRoute(node, cidr, other);
      }
      nodes.push(node);
      return node;
    },
    addClient(name, given = {}) {
      const number = 100 + ++clients;
      const ips = given.ips ?? [`192.168.50.${number}`, `fd00:50::${number}`];
      const clientNamespace = namespace(name);
      wire.plug(clientNamespace, 'eth0', ips);
      return createHost({ name, namespace: clientNamespace, ips });
    },
  };
}

/** Gives a node or client a route to `cidr` by way of `via`, on the wire. */
export function addRoute(host: Host, cidr: string, via: Host): void {
  ip(host.namespace, [`route add ${cidr} via ${via.ip(cidr.includes(':') ? 'IPv6' : 'IPv4')}`]);
}
