import type { Protocol } from '../../kube/index.ts';
import type { PlanDelta, ServicePortPlan } from '../index.ts';
import { type NodePort, nodePortOf } from './node-port.ts';

/** The NodePorts of a plan, each with how many Service ports have it: one may pass from one to another within a delta. */
export class PlannedNodePorts {
  readonly #ofPort = new Map<string, NodePort>();
  readonly #users = new Map<NodePort, number>();
  readonly #protocols: readonly Protocol[];

  /** @param protocols those of others do not count */
  constructor(ports: Iterable<ServicePortPlan>, protocols: readonly Protocol[]) {
    this.#protocols = protocols;
    for (const port of ports) this.#set(port);
  }

  get all(): ReadonlySet<NodePort> {
    return new Set(this.#users.keys());
  }

  get size(): number {
    return this.#users.size;
  }

  /** Takes a change over and tells what it means for the set of NodePorts. */
  take({ upserted, removed }: PlanDelta): { added: NodePort[]; removed: NodePort[] } {
    const before = this.#known([...removed, ...upserted]);
    for (const { key } of removed) this.#clear(key);
    for (const port of upserted) this.#set(port);
    const now = this.#known(upserted);
    return {
      added: [...now].filter((nodePort) => !before.has(nodePort)),
      removed: [...before].filter((nodePort) => !this.#users.has(nodePort)),
    };
  }

  #known(ports: readonly { readonly key: string }[]): Set<NodePort> {
    return new Set(ports.map(({ key }) => this.#ofPort.get(key)).filter((nodePort) => nodePort !== undefined));
  }

  #set(port: ServicePortPlan): void {
    this.#clear(port.key);
    if (port.nodePort === 0 || !this.#protocols.includes(port.protocol)) return;
    const nodePort = nodePortOf(port);
    this.#users.set(nodePort, (this.#users.get(nodePort) ?? 0) + 1);
    this.#ofPort.set(port.key, nodePort);
  }

  #clear(key: string): void {
    const nodePort = this.#ofPort.get(key);
    if (nodePort === undefined) return;
    this.#ofPort.delete(key);
    const users = this.#users.get(nodePort)! - 1;
    if (users === 0) this.#users.delete(nodePort);
    else this.#users.set(nodePort, users);
  }
}
