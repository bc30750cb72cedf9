import type { PlanDelta, ServicePortPlan } from '../index.ts';
import { nodePortKey } from './table.ts';

/** The NodePorts of a plan, each with how many Service ports have it: one may pass from one to another within a delta. */
export class PlannedNodePorts {
  readonly #ofPort = new Map<string, string>();
  readonly #known = new Map<string, { readonly key: Uint8Array; users: number }>();

  constructor(ports: Iterable<ServicePortPlan>) {
    for (const port of ports) this.#set(port);
  }

  get size(): number {
    return this.#known.size;
  }

  /** Of all of them, as elements of the set. */
  keys(): Uint8Array[] {
    return [...this.#known.values()].map(({ key }) => key);
  }

  /** Takes a change over and tells what it means for the set of NodePorts. */
  take({ upserted, removed }: PlanDelta): { added: Uint8Array[]; removed: Uint8Array[] } {
    const names = new Set<string>();
    const note = (portKey: string) => {
      const name = this.#ofPort.get(portKey);
      if (name !== undefined) names.add(name);
    };
    for (const { key } of [...removed, ...upserted]) note(key);
    const before = new Map([...names].map((name) => [name, this.#known.get(name)!.key]));
    for (const { key } of removed) this.#clear(key);
    for (const port of upserted) this.#set(port);
    const added = new Map<string, Uint8Array>();
    for (const { key } of upserted) {
      const name = this.#ofPort.get(key);
      if (name !== undefined && !before.has(name)) added.set(name, this.#known.get(name)!.key);
    }
    const gone = [...before].filter(([name]) => !this.#known.has(name));
    return { added: [...added.values()], removed: gone.map(([, key]) => key) };
  }

  #set(port: ServicePortPlan): void {
    this.#clear(port.key);
    if (port.nodePort === 0) return;
    const name = `${port.protocol}/${port.nodePort}`;
    const known = this.#known.get(name) ?? { key: nodePortKey(port), users: 0 };
    known.users++;
    this.#known.set(name, known);
    this.#ofPort.set(port.key, name);
  }

  #clear(portKey: string): void {
    const name = this.#ofPort.get(portKey);
    if (name === undefined) return;
    this.#ofPort.delete(portKey);
    const known = this.#known.get(name)!;
    known.users--;
    if (known.users === 0) this.#known.delete(name);
  }
}
