import { readdirSync, readlinkSync } from 'node:fs';
import {
  attempt,
  type Clock,
  formatIpPort,
  type IpFamily,
  ifPresent,
  ipEquals,
  isLoopback,
  type Timer,
} from '../../core/index.ts';
import type { EventRecorder, Protocol } from '../../kube/index.ts';
import { type Listener, listListeners, withSockDiag } from '../../netlink/sock-diag/index.ts';
import type { NodePlan, PlanDelta, ServicePortPlan } from '../../proxy/index.ts';
import { type LocalPorts, readLocalPorts } from '../../sys/index.ts';
import type { Logger } from '../logger.ts';

/** Changes come in crowds, and what a process gives up for a Service is free a moment later. */
const SETTLES_MS = 10_000;
/** Named in one line of the log, or in one Event; of more the number is told. */
const MOST_NAMED = 10;

const SHOW: Readonly<Record<Protocol, string>> = { TCP: 'ss -ltnp', UDP: 'ss -lunp', SCTP: 'ss -lSnp' };

/** What of the node is looked at. */
export interface NodeSockets {
  listeners(protocol: Protocol): readonly Listener[];
  /** Inodes of the sockets of this process. */
  own(): ReadonlySet<number>;
  localPorts(): Pick<LocalPorts, 'range' | 'has'>;
}

export interface NodePortClashesOptions {
  readonly nodeName: string;
  /** Those that are served, asked at each look. */
  readonly families: () => Iterable<{
    readonly family: IpFamily;
    readonly node: NodePlan;
    readonly ports: ReadonlyMap<string, ServicePortPlan>;
  }>;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Undefined without an API server. */
  readonly recorder: Pick<EventRecorder, 'record'> | undefined;
  /** @default those of this network namespace */
  readonly sockets?: NodeSockets;
}

/**
 * Tells of NodePorts whose number is somebody else's as well: a process of the node listens there, and hears nothing as the rules
 * come first; or the kernel may give it to a connection that a process begins. By log and Event, each once while it lasts.
 *
 * The kernel is asked once for each change of NodePorts, or crowd of changes; never by a sync that leaves them as they are.
 */
export class NodePortClashes {
  readonly #options: NodePortClashesOptions;
  readonly #sockets: NodeSockets;
  #timer: Timer | undefined;
  /** By Service, protocol and number. */
  #told: ReadonlySet<string> = new Set();
  #isRangeTold = false;

  constructor(options: NodePortClashesOptions) {
    this.#options = options;
    this.#sockets = options.sockets ?? HERE;
  }

  /** Hears what changes in the plan of a family. */
  note(delta: PlanDelta): void {
    if (this.#timer || !changesNodePorts(delta)) return;
    this.#timer = this.#options.clock.setTimer(() => {
      this.#timer = undefined;
      this.#look();
    }, SETTLES_MS);
  }

  close(): void {
    this.#timer?.cancel();
  }

  #look(): void {
    const planned = [...this.#options.families()].map(({ family, node, ports }) => ({
      family,
      node,
      ports: [...ports.values()].filter(({ nodePort }) => nodePort !== 0),
    }));
    this.#tellListeners(planned.flatMap((one) => this.#heardElsewhere(one)));
    this.#tellRange(planned.flatMap(({ ports }) => ports));
  }

  #heardElsewhere({ family, node, ports }: { family: IpFamily; node: NodePlan; ports: ServicePortPlan[] }): Clash[] {
    const byPort = new Map(ports.map((port) => [keyOf(port.protocol, port.nodePort), port]));
    const clashes: Clash[] = [];
    let own: ReadonlySet<number> | undefined;
    for (const protocol of new Set(ports.map((port) => port.protocol))) {
      for (const listener of this.#sockets.listeners(protocol)) {
        const port = byPort.get(keyOf(protocol, listener.port));
        if (!port || !isHeardWhereServed(listener, family, node)) continue;
        own ??= this.#sockets.own();
        if (!own.has(listener.inode)) clashes.push({ port, listener });
      }
    }
    return clashes;
  }

  #tellListeners(clashes: readonly Clash[]): void {
    const { logger, recorder, nodeName } = this.#options;
    const found = new Map(
      clashes.map((clash) => [`${clash.port.serviceName} ${keyOf(clash.port.protocol, clash.port.nodePort)}`, clash]),
    );
    const fresh = [...found].filter(([key]) => !this.#told.has(key)).map(([, clash]) => clash);
    this.#told = new Set(found.keys());
    if (fresh.length === 0) return;
    const nodePorts = fresh.slice(0, MOST_NAMED).map(({ port }) => `${port.name} ${port.protocol} ${port.nodePort}`);
    logger.warn(
      { nodePorts, count: fresh.length },
      'Processes of this node listen on NodePorts too, and get nothing from outside: move them',
    );
    for (const { port, listener } of fresh) {
      const [namespace = '', name = ''] = port.serviceName.split('/');
      const { protocol, nodePort } = port;
      const at = formatIpPort(listener.address, nodePort);
      const note = `A process of node "${nodeName}" listens on ${at} (${protocol}) too and gets nothing from outside, as the Service is served first: move it (${SHOW[protocol]} 'sport = :${nodePort}' names it), or choose another nodePort`;
      recorder?.record(
        { kind: 'Service', namespace, name },
        { type: 'Warning', reason: 'NodePortClash', action: 'ProgramService', note, once: 'node' },
      );
    }
  }

  /** The same for all of a node: one Event there, not one on each Service. */
  #tellRange(ports: readonly ServicePortPlan[]): void {
    const { logger, recorder, nodeName } = this.#options;
    const numbers = [...new Set(ports.map(({ nodePort }) => nodePort))].sort((a, b) => a - b);
    const local = numbers.length > 0 ? this.#sockets.localPorts() : undefined;
    const given = numbers.filter((port) => local?.has(port));
    const wasTold = this.#isRangeTold;
    this.#isRangeTold = given.length > 0;
    if (wasTold || !local || given.length === 0) return;
    const more = given.length > MOST_NAMED ? ` and ${given.length - MOST_NAMED} more` : '';
    const note = `NodePorts ${given.slice(0, MOST_NAMED).join(', ')}${more} lie in net.ipv4.ip_local_port_range (${local.range}): the kernel may give them to connections of this node's own processes. Add the cluster's range of NodePorts to net.ipv4.ip_local_reserved_ports`;
    logger.warn({ nodePorts: given.slice(0, MOST_NAMED), count: given.length, range: local.range }, RANGE_MESSAGE);
    recorder?.record(
      { kind: 'Node', namespace: '', name: nodeName },
      { type: 'Warning', reason: 'NodePortsNotReserved', action: 'ProgramService', note, once: 'node' },
    );
  }
}

const RANGE_MESSAGE =
  'NodePorts lie in net.ipv4.ip_local_port_range: add their range to net.ipv4.ip_local_reserved_ports, or connections of this node may get them';

interface Clash {
  readonly port: ServicePortPlan;
  readonly listener: Listener;
}

function changesNodePorts({ upserted, removed, replaced = [] }: PlanDelta): boolean {
  const before = new Map(replaced.map(({ key, nodePort }) => [key, nodePort]));
  return (
    removed.some(({ nodePort }) => nodePort !== 0) ||
    upserted.some(({ key, nodePort }) => nodePort !== (before.get(key) ?? 0))
  );
}

function keyOf(protocol: Protocol, port: number): string {
  return `${protocol} ${port}`;
}

/** Whether packets of the family that a socket would take go to the NodePort instead. */
function isHeardWhereServed({ address, dual }: Listener, family: IpFamily, node: NodePlan): boolean {
  if (address.family !== family) return dual;
  if (address.bytes.every((byte) => byte === 0)) return true;
  if (isLoopback(address)) return node.loopbackNodePorts ?? false;
  return node.nodePortAddresses === 'all' || node.nodePortAddresses.some((ip) => ipEquals(ip, address));
}

const HERE: NodeSockets = {
  // A kernel without SCTP has no socket of it either.
  listeners: (protocol) => ifPresent(() => withSockDiag((netlink) => listListeners(netlink, protocol))) ?? [],
  own() {
    // The one that this folder was read by is there no more.
    const links = readdirSync('/proc/self/fd').map((fd) => attempt(() => readlinkSync(`/proc/self/fd/${fd}`)) ?? '');
    return new Set(links.flatMap((link) => Number(/^socket:\[(\d+)\]$/.exec(link)?.[1] ?? [])));
  },
  localPorts: readLocalPorts,
};
