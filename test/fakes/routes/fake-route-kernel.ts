import {
  type Cidr,
  cidrContains,
  formatCidr,
  type IpAddress,
  type IpFamily,
  ipEquals,
  KernelError,
  NodeplaneError,
  parseAddressWithPrefix,
  parseCidr,
} from '../../../src/core/index.ts';
import {
  type Attachment,
  DEVICE_ALIAS,
  type DeviceOperation,
  type Hop,
  keyOf,
  type PresentDevice,
  type RouteKernel,
  type RouteObject,
  type RouteOperation,
  type RouteWay,
  textOf,
  type UnderlayChoice,
} from '../../../src/routes/index.ts';

const ERRNO = {
  ENOENT: 2,
  ESRCH: 3,
  EEXIST: 17,
  ENODEV: 19,
  EINVAL: 22,
  ENETDOWN: 100,
  ENETUNREACH: 101,
  EHOSTUNREACH: 113,
} as const;

type FakeLink = { -readonly [K in keyof PresentDevice]: PresentDevice[K] };

/** A link to begin with. */
export interface FakeLinkSpec {
  readonly name: string;
  /** @default the next one */
  readonly index?: number;
  /** With prefix: `10.0.0.1/24`. */
  readonly addresses?: readonly string[];
  /** @default 1500 */
  readonly mtu?: number;
  /** @default '' */
  readonly kind?: string;
  readonly alias?: string;
}

/**
 * What the kernel holds about routes to other nodes, in one family. It refuses what the kernel refuses, and loses what the kernel
 * loses when a link goes down or away; test/lab/routes holds it to that.
 */
export class FakeRouteKernel implements RouteKernel {
  readonly usesNexthops: boolean;
  readonly family: IpFamily;
  /** Requests so far, of all kinds. */
  requests = 0;
  readonly #links = new Map<number, FakeLink>();
  /** By key. */
  readonly #objects = new Map<string, RouteObject>();
  /** Destinations that others have routes to. */
  readonly #foreign = new Set<string>();
  readonly #watchers = new Set<() => void>();
  #lastIndex = 0;

  constructor(family: IpFamily, options: { readonly usesNexthops?: boolean } = {}) {
    this.family = family;
    this.usesNexthops = options.usesNexthops ?? family === 'IPv4';
  }

  attachment({ address, interfaceName }: UnderlayChoice): Attachment | undefined {
    this.requests++;
    for (const { name, index, mtu, addresses } of this.#links.values()) {
      if (interfaceName !== undefined && name !== interfaceName) continue;
      const found = addresses.find((one) => !address || ipEquals(one.address, address));
      if (!found) continue;
      return { index, name, mtu, address: found.address, prefixes: addresses };
    }
    return undefined;
  }

  async routedWithin(): Promise<readonly Cidr[]> {
    return [];
  }

  device(name: string): PresentDevice | undefined {
    this.requests++;
    const link = [...this.#links.values()].find((one) => one.name === name);
    return link && { ...link };
  }

  linkName(index: number): string | undefined {
    return this.#links.get(index)?.name;
  }

  changeDevice(operations: readonly DeviceOperation[]): void {
    for (const operation of operations) {
      this.requests++;
      this.#changeDevice(operation);
    }
  }

  async removeDevice({ index }: Pick<PresentDevice, 'index'>): Promise<void> {
    this.changeDevice([{ action: 'delete', index }]);
  }

  async list(tunnel: number | undefined): Promise<RouteObject[]> {
    this.requests++;
    return [...this.#objects.values()].filter((object) => !('index' in object) || object.index === tunnel);
  }

  apply(operations: readonly RouteOperation[]): readonly (KernelError | undefined)[] {
    return operations.map((operation) => {
      this.requests++;
      const errno = this.#apply(operation);
      return errno && refusal(operation, errno);
    });
  }

  watch(changed: () => void): { close(): void } {
    this.#watchers.add(changed);
    return { close: () => this.#watchers.delete(changed) };
  }

  // What others do.

  addLink(spec: FakeLinkSpec): number {
    const index = this.#newLink(spec);
    this.#tell();
    return index;
  }

  #newLink({
    name,
    index = ++this.#lastIndex,
    addresses = [],
    mtu = 1500,
    kind = '',
    alias = '',
  }: FakeLinkSpec): number {
    const blocks = addresses.map((text) => parseAddressWithPrefix(text));
    this.#links.set(index, {
      index,
      name,
      kind,
      alias,
      up: true,
      mtu,
      mac: Uint8Array.of(2, 0, 0, 0, 1, index),
      additions: [],
      vxlan: undefined,
      addresses: blocks,
    });
    return index;
  }

  /** Changes a link by name; nothing when there is none. */
  changeLink(
    name: string,
    change: { readonly up?: boolean; readonly mtu?: number; readonly addresses?: readonly string[] },
  ): void {
    const link = this.#linkNamed(name);
    if (!link) return;
    if (change.mtu !== undefined) link.mtu = change.mtu;
    if (change.addresses) link.addresses = change.addresses.map((text) => parseAddressWithPrefix(text));
    if (change.up !== undefined) {
      if (link.up && !change.up) this.#goneDown(link.index);
      link.up = change.up;
    }
    this.#tell();
  }

  deleteLink(name: string): void {
    const link = this.#linkNamed(name);
    if (link) this.#deleteLink(link.index);
    this.#tell();
  }

  /** A link's addresses are another's from now on; nobody is told. */
  moveAddresses(from: string, to: string): void {
    const [source, target] = [from, to].map((name) => [...this.#links.values()].find((one) => one.name === name)!);
    target!.addresses = source!.addresses;
    source!.addresses = [];
  }

  /** Removes the n-th of our objects, counted round; nothing when there is none. */
  removeObject(n: number): void {
    const keys = [...this.#objects.keys()];
    const key = keys[n % keys.length];
    const object = key === undefined ? undefined : this.#objects.get(key);
    if (object) this.#apply({ action: 'delete', object });
    this.#tell();
  }

  addForeignRoute(cidr: string): void {
    const destination = formatCidr(parseCidr(cidr));
    if (!this.#objects.has(destination)) this.#foreign.add(destination);
  }

  removeForeignRoute(cidr: string): void {
    this.#foreign.delete(formatCidr(parseCidr(cidr)));
  }

  foreignRoutes(): readonly string[] {
    return [...this.#foreign];
  }

  /** All of ours in lines, with links by name and without the numbers of nexthops: the same text is the same forwarding. */
  print(): string {
    const links = [...this.#links.values()].map(
      ({ name, up, mtu, mac, addresses, vxlan }) =>
        `link ${name} ${up ? 'up' : 'down'} mtu ${mtu} ${vxlan ? `${Buffer.from(mac).toString('hex')} vni ${vxlan.vni}` : ''} ${addresses.map(formatCidr).join(' ')}`,
    );
    const objects = [...this.#objects.values()].filter(({ kind }) => kind !== 'nexthop').map((one) => this.#named(one));
    return [...links.sort(), ...objects.sort(), ...[...this.#foreign].sort().map((one) => `foreign ${one}`)].join('\n');
  }

  #named(object: RouteObject): string {
    const hop =
      object.kind === 'route' && object.way === 'nexthop' ? this.#objects.get(`nexthop ${object.id}`) : undefined;
    const text = hop ? `${keyOf(object)} ${textOf(hop).replace(/^nexthop \d+ /, '')}` : textOf(object);
    return text.replace(/ dev (\d+)/, (_, index) => ` dev ${this.#links.get(Number(index))?.name}`);
  }

  #changeDevice(operation: DeviceOperation): void {
    if (operation.action === 'create') {
      const { kind, name, mtu } = operation.device;
      if (kind === 'wireguard') {
        const index = this.#newLink({ name, kind, alias: DEVICE_ALIAS, mtu });
        Object.assign(this.#links.get(index)!, { up: false, mac: new Uint8Array() });
        return;
      }
      const { mac, vni, port, underlay: link, local } = operation.device;
      const holder = [...this.#links.values()].find((one) => one.vxlan?.vni === vni && one.vxlan.port === port);
      if (holder) throw new NodeplaneError('ERR_ROUTES', `VNI ${vni} belongs to "${holder.name}"`);
      const index = this.#newLink({ name });
      Object.assign(this.#links.get(index)!, {
        kind,
        alias: DEVICE_ALIAS,
        up: false,
        mtu,
        mac,
        vxlan: { vni, port, link, local, learning: false, ttl: 0 },
      });
      return;
    }
    const link = this.#links.get(operation.index);
    if (!link) throw kernelError('RTM_SETLINK', `link ${operation.index}`, 'ENODEV');
    switch (operation.action) {
      case 'delete':
        this.#deleteLink(link.index);
        break;
      case 'up':
        link.up = true;
        break;
      case 'add-address':
        link.addresses = [...link.addresses, operation.address];
        break;
      case 'delete-address':
        link.addresses = link.addresses.filter((one) => !sameBlock(one, operation.address));
        break;
      case 'change':
        link.mtu = operation.mtu ?? link.mtu;
        link.mac = operation.mac ?? link.mac;
        if (link.vxlan) link.vxlan = { ...link.vxlan, local: operation.local ?? link.vxlan.local };
    }
  }

  #apply({ action, object }: RouteOperation): keyof typeof ERRNO | undefined {
    const key = keyOf(object);
    const present = this.#objects.get(key);
    const isThere = present !== undefined;
    if (action === 'delete') {
      if (!isThere) return object.kind === 'route' ? 'ESRCH' : 'ENOENT';
      // A destination that the MAC address does not have is taken for removed.
      if (object.kind === 'fdb' && textOf(present) !== textOf(object)) return undefined;
      this.#objects.delete(key);
      if (object.kind === 'nexthop') this.#dropRoutes((route) => route.way === 'nexthop' && route.id === object.id);
      return undefined;
    }
    const refused = this.#objection(object);
    if (refused) return refused;
    const isTaken =
      object.kind === 'nexthop' ? isThere : object.kind === 'route' && (isThere || this.#foreign.has(key));
    if (action === 'add' && isTaken) return 'EEXIST';
    this.#objects.set(key, object);
    return undefined;
  }

  #objection(object: RouteObject): keyof typeof ERRNO | undefined {
    if (object.kind === 'nexthop') return this.#hopObjection('nexthop', object);
    if (object.kind === 'route') {
      if (object.way === 'unreachable') return undefined;
      if (object.way === 'gateway') return this.#hopObjection('route', object);
      if (object.way === 'device') {
        const link = this.#links.get(object.outInterface);
        return link ? downOr(link, undefined) : 'ENODEV';
      }
      if (object.way === 'other') throw new Error('nobody makes such a route');
      return this.#objects.has(`nexthop ${object.id}`) ? undefined : 'EINVAL';
    }
    return this.#links.has(object.index) ? undefined : 'ENODEV';
  }

  #hopObjection(kind: 'nexthop' | 'route', { outInterface, gateway, onlink }: Hop): keyof typeof ERRNO | undefined {
    const link = this.#links.get(outInterface);
    if (!link) return 'ENODEV';
    const isReachable = onlink || (link.up && link.addresses.some((block) => cidrContains(block, gateway)));
    if (this.family === 'IPv6') {
      if (!onlink) return isReachable ? undefined : 'EHOSTUNREACH';
      return downOr(link, this.#leadsElsewhere(gateway, outInterface) ? 'EINVAL' : undefined);
    }
    // Of a route the gateway is looked for first, of a nexthop object the link.
    if (kind === 'nexthop') return downOr(link, isReachable ? undefined : 'ENETUNREACH');
    return isReachable ? downOr(link, undefined) : 'ENETUNREACH';
  }

  /** Whether the route that an address takes is one through another link (ip6_route_check_nh_onlink). */
  #leadsElsewhere(gateway: IpAddress, outInterface: number): boolean {
    const routes = [...this.#objects.values()]
      .flatMap((object) => (object.kind === 'route' && cidrContains(object.destination, gateway) ? [object] : []))
      .sort((a, b) => b.destination.prefixLength - a.destination.prefixLength || rank(a.way) - rank(b.way));
    const [best] = routes;
    return (best?.way === 'gateway' || best?.way === 'device') && best.outInterface !== outInterface;
  }

  #linkNamed(name: string): FakeLink | undefined {
    return [...this.#links.values()].find((one) => one.name === name);
  }

  #deleteLink(index: number): void {
    this.#goneDown(index);
    for (const [key, object] of this.#objects)
      if (object.kind === 'fdb' && object.index === index) this.#objects.delete(key);
    this.#links.delete(index);
    // A VXLAN device goes with the link its packets leave by.
    for (const { index: other, vxlan } of this.#links.values()) if (vxlan?.link === index) this.#deleteLink(other);
  }

  /** Routes, nexthops and neighbours go; the FDB stays. */
  #goneDown(index: number): void {
    for (const [key, object] of this.#objects) {
      if (object.kind === 'nexthop' && object.outInterface === index) {
        this.#objects.delete(key);
        this.#dropRoutes((route) => route.way === 'nexthop' && route.id === object.id);
      }
      if (object.kind === 'neighbour' && object.index === index) this.#objects.delete(key);
    }
    this.#dropRoutes((route) => 'outInterface' in route && route.outInterface === index);
  }

  #dropRoutes(drop: (route: Extract<RouteObject, { kind: 'route' }>) => boolean): void {
    for (const [key, object] of this.#objects) if (object.kind === 'route' && drop(object)) this.#objects.delete(key);
  }

  #tell(): void {
    for (const watcher of [...this.#watchers]) watcher();
  }
}

/** The metric of an unreachable route is the last one. */
function rank(way: RouteWay['way']): number {
  return way === 'unreachable' ? 1 : 0;
}

function downOr<T>({ up }: FakeLink, otherwise: T): T | 'ENETDOWN' {
  return up ? otherwise : 'ENETDOWN';
}

function refusal({ action, object }: RouteOperation, errno: keyof typeof ERRNO): KernelError {
  return kernelError(`${action} ${object.kind}`, textOf(object), errno);
}

function kernelError(operation: string, object: string, errno: keyof typeof ERRNO): KernelError {
  return new KernelError('ERR_NETLINK_ACK', { operation, object, errno: ERRNO[errno] });
}

function sameBlock(a: Cidr, b: Cidr): boolean {
  return a.prefixLength === b.prefixLength && ipEquals(a.address, b.address);
}
