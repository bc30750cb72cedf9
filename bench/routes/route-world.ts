import { type IpFamily, parseCidr, yielder } from '../../src/core/index.ts';
import type { Node } from '../../src/kube/index.ts';
import {
  FamilyRoutes,
  NetlinkRouteKernel,
  type RouteEvent,
  type RouteKernel,
  type RouteMode,
} from '../../src/routes/index.ts';
import { inNetns } from '../../src/sys/index.ts';
import { numberedNode } from '../../test/fakes/routes/node-objects.ts';
import { createNamespace, type TestNamespace } from '../../test/lab/namespace.ts';
import { ip } from '../../test/lab/wire.ts';
import { type PromptClock, promptClock } from '../prompt-clock.ts';

/** What routes are made of. */
export interface RouteCase {
  readonly family: IpFamily;
  readonly mode: RouteMode;
}

/** The cases that figures are taken of. */
export const CASES: readonly RouteCase[] = (['host-gw', 'vxlan'] as const).flatMap((mode) =>
  (['IPv4', 'IPv6'] as const).map((family) => ({ family, mode })),
);

export function nameOf({ family, mode }: RouteCase): string {
  return `${mode}, ${family}`;
}

/** Longer than the least interval between two syncs. */
const QUIET_MS = 100;
/** After this long a check goes before a requested sync. */
const CHECK_OVERDUE_MS = 130_000;

/** The Nodes but our own, which is number 1. */
export function otherNodes(count: number): Node[] {
  return Array.from({ length: count }, (_, n) => numberedNode(n + 2));
}

/** A node's namespace, with a link on which all numbered nodes are. None of them answers. */
export function createNodeNamespace(label: string): TestNamespace {
  const namespace = createNamespace(label);
  ip(namespace, [
    'link set lo up',
    'link add eth0 type veth peer name peer',
    'link set peer up',
    'link set eth0 up',
    'address add 10.0.0.1/16 dev eth0',
    'address add fd00::1/64 dev eth0 nodad',
  ]);
  return namespace;
}

export interface RouteWorldOptions {
  /** Number of this node. @default 1 */
  readonly own?: number;
  /** What the routes are to use in place of the kernel, made of it: a recorder, say. @default the kernel */
  readonly seen?: (kernel: RouteKernel) => RouteKernel;
}

/** The routes of one node, in a namespace, without an agent around them. */
export class RouteWorld {
  readonly namespace: TestNamespace;
  readonly #kernel: NetlinkRouteKernel;
  readonly #routes: FamilyRoutes;
  readonly #clock: PromptClock = promptClock();
  #next: { resolve(): void; reject(error: unknown): void } | undefined;

  constructor({ family, mode }: RouteCase, namespace: TestNamespace, options: RouteWorldOptions = {}) {
    const { own = 1, seen = (kernel: RouteKernel) => kernel } = options;
    this.namespace = namespace;
    this.#kernel = inNetns(namespace.path, () => NetlinkRouteKernel.open(family));
    this.#routes = new FamilyRoutes({
      family,
      nodeName: `n${own}`,
      settings: { mode, vni: 1, port: 8472, mtu: undefined },
      kernel: seen(this.#kernel),
      clock: this.#clock,
      observe: (event) => this.#happened(event),
    });
    this.#routes.nodeChanged(numberedNode(own));
  }

  /** Begins with these Nodes, told in slices as a list of the API is; resolves when all of them are in the kernel. */
  async start(nodes: readonly Node[]): Promise<void> {
    const synced = this.#nextSync();
    const rest = yielder();
    for (const node of nodes) {
      this.#routes.nodeChanged(node);
      const wait = rest();
      if (wait) await wait;
    }
    inNetns(this.namespace.path, () => this.#routes.start());
    await synced;
  }

  /** Tells of a Node, and resolves to the milliseconds until that is in the kernel. */
  change(node: Node): Promise<number> {
    return this.#timed(QUIET_MS, () => this.#routes.nodeChanged(node));
  }

  /** A Node went. */
  remove(name: string): Promise<number> {
    return this.#timed(QUIET_MS, () => this.#routes.nodeRemoved(name));
  }

  /** Has everything compared with the kernel, and then a change written. */
  verify(node: Node): Promise<number> {
    return this.#timed(CHECK_OVERDUE_MS, () => this.#routes.nodeChanged(node));
  }

  /** Has everything compared and written: the range of Services is another one. */
  reconcile(serviceRange: string): Promise<number> {
    return this.#timed(QUIET_MS, () => this.#routes.serviceRangesChanged([parseCidr(serviceRange)]));
  }

  /** Ends the work. What was written stays. */
  async stop(): Promise<void> {
    await this.#routes.stop();
    this.#kernel.close();
  }

  async #timed(passedMs: number, tell: () => void): Promise<number> {
    this.#clock.skip(passedMs);
    const synced = this.#nextSync();
    const started = performance.now();
    tell();
    await synced;
    return performance.now() - started;
  }

  #nextSync(): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#next = { resolve, reject };
    });
  }

  #happened(event: RouteEvent): void {
    if (event.kind === 'synced') this.#next?.resolve();
    else if (event.kind === 'syncFailed' || event.kind === 'verifyFailed') this.#next?.reject(event.error);
    else if (event.kind === 'leftOut' && event.reason !== undefined) {
      this.#next?.reject(new Error(`${event.name} is left out: ${event.reason}`));
    } else if (event.kind === 'driftFound') this.#next?.reject(new Error(`Drift: ${event.drifts.slice(0, 3)}`));
  }
}
