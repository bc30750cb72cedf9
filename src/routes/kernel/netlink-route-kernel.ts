import {
  type Cidr,
  cidrContains,
  errorText,
  type IpFamily,
  ipEquals,
  isExists,
  isUnsupported,
  type KernelError,
  NodeplaneError,
  specialRange,
} from '../../core/index.ts';
import { listInSlices, Netlink, type NetlinkRequest } from '../../netlink/index.ts';
import {
  decodeListedRoute,
  deleteAddress,
  deleteLink,
  getLink,
  type InterfaceAddress,
  type Link,
  listAddresses,
  listLinks,
  listNexthops,
  newAddress,
  newVxlan,
  routeListing,
  setLink,
  setVxlan,
} from '../../netlink/route/index.ts';
import { IFF_NOARP, RT_TABLE_MAIN, rtmsg } from '../../netlink/uapi/index.ts';
import { newWireguardLink } from '../../netlink/wireguard/index.ts';
import { isOurDevice, KIND_NAMES } from '../plan/device-diff.ts';
import type { TunnelDevice } from '../plan/tunnel.ts';
import type { Attachment } from '../plan/underlay.ts';
import { adoptions } from './adopt.ts';
import { KernelWatch } from './kernel-watch.ts';
import { listObjects } from './list-objects.ts';
import { RequestForms } from './request-forms.ts';
import {
  DEVICE_ALIAS,
  type DeviceOperation,
  type PresentDevice,
  type RouteKernel,
  type UnderlayChoice,
} from './route-kernel.ts';
import { type RouteObject, type RouteOperation, RTPROT_NODEPLANE } from './route-object.ts';

/** The routes of the network namespace in which it was opened, over rtnetlink. */
export class NetlinkRouteKernel implements RouteKernel {
  readonly usesNexthops: boolean;
  readonly #family: IpFamily;
  readonly #netlink: Netlink;
  readonly #watch: KernelWatch;
  readonly #forms = new RequestForms();

  /** Opens a conversation in the namespace of the calling thread. Throws ERR_NETLINK_SOCKET, KernelError. */
  static open(family: IpFamily): NetlinkRouteKernel {
    return new NetlinkRouteKernel(family, Netlink.openRoute());
  }

  private constructor(family: IpFamily, netlink: Netlink) {
    this.#family = family;
    this.#netlink = netlink;
    this.usesNexthops = family === 'IPv4' && hasNexthops(netlink);
    this.#watch = new KernelWatch(family, netlink.portId);
  }

  close(): void {
    this.#netlink.close();
  }

  attachment({ address, interfaceName }: UnderlayChoice): Attachment | undefined {
    const all = listAddresses(this.#netlink, { family: this.#family });
    const named = interfaceName === undefined ? undefined : getLink(this.#netlink, { name: interfaceName });
    const found = all
      .filter(({ index }) => interfaceName === undefined || index === named?.index)
      .find((one) => (address ? ipEquals(one.address, address) : specialRange(one.address) === undefined));
    this.#watch.addressIs(address ?? found?.address, found?.index);
    const link = found && getLink(this.#netlink, { index: found.index });
    if (!link) return undefined;
    const { index, name, mtu } = link;
    const prefixes = all.filter((one) => one.index === index && specialRange(one.address) === undefined).map(blockOf);
    this.#watch.seen('underlay', link);
    this.#watch.underlayHas(prefixes);
    return { index, name, mtu, address: found.address, prefixes };
  }

  async routedWithin({ prefixes, index: outInterface }: Attachment): Promise<readonly Cidr[]> {
    const isWithin = (range: Cidr) =>
      prefixes.some((prefix) => range.prefixLength > prefix.prefixLength && cidrContains(prefix, range.address));
    const listing = routeListing({ family: this.#family, table: RT_TABLE_MAIN, outInterface });
    return listInSlices(this.#netlink, listing, (payload) => {
      // Most are ours; to read them all takes as long as all the rest of a sync.
      if (rtmsg.decode(payload).rtm_protocol === RTPROT_NODEPLANE) return undefined;
      const route = decodeListedRoute(payload);
      return route?.gateway && isWithin(route.destination) ? route.destination : undefined;
    });
  }

  device(name: string): PresentDevice | undefined {
    const link = getLink(this.#netlink, { name });
    this.#watch.seen(`device ${name}`, link);
    if (!link) return undefined;
    const { index, kind, alias, up, mtu, address: mac, vxlan } = link;
    const addresses = listAddresses(this.#netlink, { family: this.#family, index })
      .filter(({ address }) => specialRange(address) !== 'link-local')
      .map(blockOf);
    return { index, name, kind, alias, up, mtu, mac, additions: this.#additionsOf(link), vxlan, addresses };
  }

  linkName(index: number): string | undefined {
    return getLink(this.#netlink, { index })?.name;
  }

  changeDevice(operations: readonly DeviceOperation[]): void {
    for (const operation of operations) {
      if (operation.action === 'create') this.#create(operation.device);
      else this.#netlink.execute(...deviceRequests(operation));
    }
    this.#watch.tunnelChanged();
  }

  async removeDevice({ index, name }: Pick<PresentDevice, 'index' | 'name'>): Promise<void> {
    // What the kernel tells of it meanwhile is no news.
    this.#watch.seen(`device ${name}`, undefined);
    await this.#netlink.executeAsync(deleteLink({ index }));
    this.#watch.tunnelChanged();
  }

  list(tunnel: number | undefined): Promise<RouteObject[]> {
    this.#watch.tunnelIs(tunnel);
    return listObjects(this.#netlink, { family: this.#family, tunnel, withNexthops: this.usesNexthops });
  }

  apply(operations: readonly RouteOperation[]): readonly (KernelError | undefined)[] {
    const attempt = (all: readonly RouteOperation[]) =>
      this.#netlink.attempt(all.map((operation) => this.#forms.requestOf(operation)));
    const first = attempt(operations);
    this.#watch.neighboursDeleted(
      operations.flatMap(({ action, object }) =>
        action === 'delete' && object.kind === 'neighbour' ? [object.ip] : [],
      ),
    );
    const adopted = [...adoptions(this.#netlink, operations, first)];
    if (adopted.length === 0) return first;
    const results = [...first];
    const second = attempt(adopted.map(([, operation]) => operation));
    for (const [at, [index]] of adopted.entries()) results[index] = second[at];
    return results;
  }

  watch(changed: () => void): { close(): void } {
    return this.#watch.open(changed);
  }

  /** A port of a bridge hands what comes in to the bridge; without ARP packets to each neighbour go to the device's own MAC address. */
  #additionsOf({ master, flags, vxlan }: Link): readonly string[] {
    if (!vxlan) return [];
    const isMute = (flags & IFF_NOARP) !== 0;
    return [
      ...vxlan.additions,
      ...(master === 0 ? [] : [`master ${this.linkName(master) ?? master}`]),
      ...(isMute ? ['arp off'] : []),
    ];
  }

  /** The alias comes in the same datagram, so that no device of ours is ever without. */
  #create(device: TunnelDevice): void {
    const { kind, name, mtu } = device;
    const create = () =>
      this.#netlink.execute(
        device.kind === 'wireguard' ? newWireguardLink({ name, mtu }) : newVxlan({ ...device, link: device.underlay }),
        setLink({ name }, { alias: DEVICE_ALIAS }),
      );
    try {
      create();
      this.#watch.seen('obstacle', undefined);
    } catch (cause) {
      if (isUnsupported(cause)) {
        const message = `Cannot make a ${KIND_NAMES[kind]} device: this kernel does not know them; load the module ${kind}, or choose another --routes on all nodes`;
        throw new NodeplaneError('ERR_ROUTES', message, { facts: { device: name }, cause });
      }
      if (!isExists(cause) || device.kind === 'wireguard') throw cause;
      const { vni, port } = device;
      // Each family has its own; without a local address a device is of IPv4.
      const holder = listLinks(this.#netlink).find(
        ({ vxlan }) => vxlan?.vni === vni && vxlan.port === port && (vxlan.local?.family ?? 'IPv4') === this.#family,
      );
      if (holder && isOurDevice(holder)) {
        // Ours, which others renamed.
        this.#netlink.execute(deleteLink({ index: holder.index }));
        create();
        return;
      }
      // As soon as it is gone ours can come.
      this.#watch.seen('obstacle', holder);
      const who = holder ? `belongs to "${holder.name}"` : 'is taken';
      const message = `Cannot make the VXLAN device "${name}": network ${vni} at port ${port} ${who}; stop what made it and remove it (ip link delete ${holder?.name ?? 'NAME'}), or choose another network with --routes-vni on all nodes`;
      throw new NodeplaneError('ERR_ROUTES', message, { facts: { device: name, vni, port }, cause });
    }
  }
}

function deviceRequests(operation: Exclude<DeviceOperation, { action: 'create' }>): NetlinkRequest[] {
  const { index } = operation;
  switch (operation.action) {
    case 'delete':
      return [deleteLink({ index })];
    case 'up':
      return [setLink(index, { up: true })];
    case 'add-address':
      return [newAddress({ index, ...operation.address })];
    case 'delete-address':
      return [deleteAddress({ index, ...operation.address })];
    case 'change': {
      const { mtu, mac, local, learning, ttl } = operation;
      const link = mtu === undefined && !mac ? [] : [setLink(index, { mtu, mac })];
      const isVxlan = local !== undefined || learning !== undefined || ttl !== undefined;
      return isVxlan ? [setVxlan(index, { local, learning, ttl }), ...link] : link;
    }
  }
}

/** Whether the kernel has nexthop objects (Linux 5.3). Throws ERR_ROUTES when it does not say. */
export function hasNexthops(netlink: Netlink): boolean {
  try {
    listNexthops(netlink, { family: 'IPv4' });
    return true;
  } catch (error) {
    if (isUnsupported(error)) return false;
    throw new NodeplaneError('ERR_ROUTES', `Cannot list nexthop objects: ${errorText(error)}`, { cause: error });
  }
}

function blockOf({ address, prefixLength }: InterfaceAddress): Cidr {
  return { address, prefixLength };
}
