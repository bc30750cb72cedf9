import {
  type Clock,
  type Drift,
  formatIp,
  inSlices,
  ipEquals,
  isExists,
  isNotFound,
  type KernelError,
  NodeplaneError,
  type Steps,
  yielder,
} from '../../core/index.ts';
import { objectDrift } from '../kernel/object-drift.ts';
import type { RouteKernel } from '../kernel/route-kernel.ts';
import { keyOf, type LinkNames, type RouteObject, type RouteOperation, textOf } from '../kernel/route-object.ts';
import { deviceDrift, diffDevice, isOurDevice, KIND_NAMES } from '../plan/device-diff.ts';
import { diffObjects, ObjectDiff } from '../plan/diff.ts';
import { type Devices, ownObjects, peerObjects } from '../plan/objects.ts';
import type { OwnNode, PeerPlan } from '../plan/planner.ts';
import type { TunnelDevice } from '../plan/tunnel.ts';
import { ChangeOver } from './change-over.ts';
import { NexthopIds } from './nexthop-ids.ts';

/** What this node is to have, whoever the others are. */
export interface Ground {
  readonly own: OwnNode;
  /** Undefined: no tunnel. */
  readonly tunnel: TunnelDevice | undefined;
  /** The names of our devices, wanted or not. */
  readonly deviceNames: readonly string[];
}

interface Committed {
  readonly plan: PeerPlan;
  readonly nexthopId: number | undefined;
}

/** Requests that go to the kernel in one piece, before others get their turn. */
const OPERATIONS_AT_ONCE = 500;
/** Objects between two looks at the clock, which takes as long as dealing with one. */
const STEP = 16;
/** Making a device, then what needs its index; and again where others meddle meanwhile. */
const DEVICE_ROUNDS = 4;

/**
 * Brings the kernel to what is planned and knows what it was brought to: the step from plans to kernel objects, and from there,
 * by the difference, to requests. What the kernel refuses of one peer does not touch the others.
 */
export class KernelRoutes {
  readonly #kernel: RouteKernel;
  readonly #changeOver: ChangeOver;
  readonly #ids = new NexthopIds();
  readonly #committed = new Map<string, Committed>();
  /** By peer; what is no peer's (any more) by its key. */
  readonly #refusals = new Map<string, string>();
  /** Undefined until the first `reconcile`. */
  #devices: Devices | undefined;

  /** @param due told when `reconcile` has something to do that it had to wait with */
  constructor(kernel: RouteKernel, clock: Clock, due: () => void) {
    this.#kernel = kernel;
    this.#changeOver = new ChangeOver(clock, due);
  }

  /** The work is to end: nobody is waited for any more. */
  hurry(): void {
    this.#changeOver.stop();
  }

  /** The index of the device that packets to other nodes' pods go through; undefined: there is none. */
  get tunnel(): number | undefined {
    return this.#devices?.tunnel;
  }

  /** The plan that was written for a peer; undefined: none was. */
  committed(name: string): PeerPlan | undefined {
    return this.#committed.get(name)?.plan;
  }

  /** What the kernel refused of a peer, in words; undefined: nothing. */
  refusalOf(name: string): string | undefined {
    return this.#refusals.get(name);
  }

  /** How many peers the kernel refused something of, and objects that are no peer's. */
  get refused(): number {
    return this.#refusals.size;
  }

  /**
   * Makes the kernel equal to the plans, whatever is there.
   *
   * @returns how many requests it took
   * @throws KernelError, ERR_ROUTES when it cannot be read, or the device cannot be made
   */
  async reconcile(ground: Ground, plans: ReadonlyMap<string, PeerPlan>): Promise<number> {
    const isFirst = this.#devices === undefined;
    const isNew = isFirst && ground.tunnel?.kind === 'vxlan' && !this.#kernel.device(ground.tunnel.name);
    const tunnel = ground.tunnel && this.#bringDevice(ground.tunnel);
    const devices = { underlay: ground.own.underlay.index, tunnel };
    this.#devices = devices;
    const present = await this.#kernel.list(tunnel);
    const left: Committed[] = [];
    for (const [name, committed] of this.#committed) {
      const plan = plans.get(name);
      if (!plan || hasMoved(committed, plan)) left.push(committed);
      if (!plan) this.#committed.delete(name);
    }
    this.#ids.adopt(present);
    this.#refusals.clear();
    const operations = await inSlices(this.#differences(ground, present, this.#commitAll(plans)));
    const names = [...plans.keys()];
    const ways = isNew && changesWays(operations) ? operations.findIndex(({ object }) => !('index' in object)) : 0;
    if (ways > 0) {
      await this.#apply(operations.slice(0, ways), names);
      await this.#changeOver.othersAreReady();
    }
    await this.#apply(operations.slice(ways), names);
    for (const { nexthopId } of left) this.#ids.release(nexthopId);
    for (const name of ground.deviceNames) if (name !== ground.tunnel?.name) await this.#dismiss(name, ground);
    return operations.length;
  }

  /**
   * Writes what changed for some peers, without a look at the kernel or at the others. Peers the kernel has refused something of
   * are left to the next `reconcile`: what it holds of them is not known.
   *
   * @returns how many requests it took
   */
  async update(changes: ReadonlyMap<string, PeerPlan | undefined>): Promise<number> {
    const before: RouteObject[] = [];
    const after: RouteObject[] = [];
    const names = [...changes.keys()].filter((name) => !this.#refusals.has(name));
    const left: Committed[] = [];
    for (const name of names) {
      const committed = this.#committed.get(name);
      const plan = changes.get(name);
      if (committed) before.push(...this.#objectsOf(committed));
      if (committed && (!plan || hasMoved(committed, plan))) left.push(committed);
      if (plan) after.push(...this.#objectsOf(this.#commit(name, plan)));
      else this.#committed.delete(name);
    }
    const operations = diffObjects(before, after);
    await this.#apply(operations, names);
    for (const { nexthopId } of left) this.#ids.release(nexthopId);
    return operations.length;
  }

  /** In what the kernel differs from the plans; empty: in nothing. Rejects with KernelError, ERR_ROUTES. */
  async drifts(ground: Ground): Promise<Drift[]> {
    const device = ground.deviceNames.flatMap((name) => {
      if (this.#changeOver.isKept(name)) return [];
      const wanted = name === ground.tunnel?.name ? ground.tunnel : undefined;
      return deviceDrift(name, this.#kernel.device(name), wanted);
    });
    const devices = this.#devices;
    if (!devices || device.length > 0) return device;
    const listed = await this.#kernel.list(devices.tunnel);
    const operations = await inSlices(this.#differences(ground, listed, this.#committed.values()));
    return objectDrift(operations, listed, this.#linkNames());
  }

  #linkNames(): LinkNames {
    const names = new Map<number, string>();
    return (index) => {
      const name = names.get(index) ?? this.#kernel.linkName(index) ?? String(index);
      names.set(index, name);
      return name;
    };
  }

  *#differences({ own }: Ground, present: readonly RouteObject[], peers: Iterable<Committed>): Steps<RouteOperation[]> {
    const diff = new ObjectDiff();
    let done = 0;
    for (const object of present) {
      diff.isThere(object);
      if (++done % STEP === 0) yield;
    }
    for (const object of ownObjects(own.ranges)) diff.want(object);
    for (const committed of peers) {
      for (const object of this.#objectsOf(committed)) diff.want(object);
      if (++done % STEP === 0) yield;
    }
    return diff.operations();
  }

  *#commitAll(plans: ReadonlyMap<string, PeerPlan>): Iterable<Committed> {
    for (const [name, plan] of plans) yield this.#commit(name, plan);
  }

  #commit(name: string, plan: PeerPlan): Committed {
    const usesNexthop = this.#kernel.usesNexthops && plan.kind !== 'wireguard';
    const before = this.#committed.get(name);
    const known = before && !hasMoved(before, plan) ? before.nexthopId : undefined;
    const nexthopId = usesNexthop ? this.#ids.of(known, plan.gateway) : undefined;
    const committed = { plan, nexthopId };
    this.#committed.set(name, committed);
    return committed;
  }

  #objectsOf({ plan, nexthopId }: Committed): RouteObject[] {
    return this.#devices ? peerObjects(plan, this.#devices, nexthopId) : [];
  }

  /** Makes the device what it is to be, and returns its index. */
  #bringDevice(wanted: TunnelDevice): number {
    for (let round = 0; round < DEVICE_ROUNDS; round++) {
      const present = this.#kernel.device(wanted.name);
      const operations = diffDevice(present, wanted);
      if (present && operations.length === 0) return present.index;
      this.#kernel.changeDevice(operations);
    }
    const message = `Cannot set up the ${KIND_NAMES[wanted.kind]} device "${wanted.name}": somebody else keeps changing it; look for another program that manages it`;
    throw new NodeplaneError('ERR_ROUTES', message, { facts: { device: wanted.name } });
  }

  /** Removes a device of ours that is not wanted, unless others may still send by it. */
  async #dismiss(name: string, { tunnel }: Ground): Promise<void> {
    const present = this.#kernel.device(name);
    if (present && isOurDevice(present)) {
      const isInUse = !tunnel && present.kind === 'vxlan' && present.up;
      if (isInUse && !this.#changeOver.mayGo(name)) return;
      await this.#kernel.removeDevice(present);
    }
    this.#changeOver.gone(name);
  }

  /** @param names the peers that the operations may be about */
  async #apply(operations: readonly RouteOperation[], names: readonly string[]): Promise<void> {
    const rest = yielder();
    const refused = new Map<string, string>();
    const nameOf = this.#linkNames();
    for (let at = 0; at < operations.length; at += OPERATIONS_AT_ONCE) {
      const batch = operations.slice(at, at + OPERATIONS_AT_ONCE);
      const outcomes = this.#kernel.apply(batch);
      for (let index = 0; index < outcomes.length; index++) {
        const error = outcomes[index];
        if (!error) continue;
        const operation = batch[index]!;
        // Deleting what is gone is done; with a nexthop go its routes, with a device what leads through it.
        if (operation.action === 'delete' && isNotFound(error)) continue;
        refused.set(keyOf(operation.object), refusalText(operation, error, nameOf));
        if (operation.object.kind === 'nexthop' && isExists(error)) this.#ids.avoid(operation.object.id);
      }
      await rest();
    }
    if (refused.size > 0) this.#blame(refused, names);
  }

  /** Finds the peers that refused objects are of; those of none are peers that went, or this node. */
  #blame(refused: ReadonlyMap<string, string>, names: readonly string[]): void {
    const unowned = new Map(refused);
    for (const name of names) {
      const committed = this.#committed.get(name);
      for (const object of committed ? this.#objectsOf(committed) : []) {
        const reason = refused.get(keyOf(object));
        if (reason === undefined) continue;
        unowned.delete(keyOf(object));
        if (!this.#refusals.has(name)) this.#refusals.set(name, reason);
      }
    }
    for (const [key, reason] of unowned) this.#refusals.set(key, reason);
  }
}

/**
 * Whether the peer is behind another gateway now. It gets another nexthop object then: when one is changed in place the kernel
 * looks through all routes for those that lead through it (fib_info_notify_update), which takes 180 us at 5,000 peers.
 */
function hasMoved({ plan: before }: Committed, plan: PeerPlan): boolean {
  return before.kind !== 'wireguard' && (plan.kind === 'wireguard' || !ipEquals(before.gateway, plan.gateway));
}

/** Whether packets that go some way now are to go another way, or none. */
function changesWays(operations: readonly RouteOperation[]): boolean {
  return operations.some(({ action, object }) => object.kind === 'route' && action !== 'add');
}

const NO_CARRIER =
  'the interface that leads to it is down, or has no carrier; look for its cable, and its port on the switch';

function refusalText({ action, object }: RouteOperation, error: KernelError, nameOf: LinkNames): string {
  if (action === 'add' && isExists(error)) {
    const look = object.kind === 'nexthop' ? `ip nexthop show id ${object.id}` : `ip route show ${keyOf(object)}`;
    return `somebody else has ${keyOf(object)} (${look}); remove it if it is not needed`;
  }
  // One reason for all peers: the kernel takes no nexthop object on such a link, and has removed those it had.
  if (object.kind === 'nexthop' && error.errnoName === 'ENETDOWN') return NO_CARRIER;
  const refusal = `the kernel refuses to ${action} ${textOf(object, nameOf)}: ${error.message}`;
  // The gateway in a tunnel is an address of the range itself: where another route takes that elsewhere, "onlink" does not help (IPv6).
  if (object.kind === 'route' && object.way === 'gateway' && error.errnoName === 'EINVAL') {
    return `${refusal}; so it does where a route of somebody else leads to ${formatIp(object.gateway)} by another link (ip -6 route get ${formatIp(object.gateway)}); remove that if it is not needed`;
  }
  return refusal;
}
