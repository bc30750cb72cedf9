import {
  addressBits,
  formatIp,
  type IpAddress,
  type IpFamily,
  ifPresent,
  isExists,
  isLoopback,
  type KernelError,
} from '../../../core/index.ts';
import { Netlink, type NetlinkRequest, openTogether, resolveFamily } from '../../../netlink/index.ts';
import {
  decodeDestination,
  decodeVirtualServer,
  deleteDestination,
  deleteVirtualServer,
  destinationListing,
  familyOf,
  IPVS_GENL_NAME,
  type IpvsFamily,
  newDestination,
  newVirtualServer,
  setDestination,
  setVirtualServer,
  virtualServerListing,
} from '../../../netlink/ipvs/index.ts';
import {
  deleteAddress,
  deleteLink,
  getLink,
  listAddresses,
  newAddress,
  newDummy,
} from '../../../netlink/route/index.ts';
import { NETLINK_GENERIC, RT_SCOPE_LINK } from '../../../netlink/uapi/index.ts';
import { type Operation, SUBSYSTEM_OF, type Subsystem } from '../diff/operations.ts';
import type { IpvsKernel } from './kernel.ts';
import { SetTable } from './set-table.ts';

/** The device that makes the addresses of Services the node's own; kube-proxy's name. */
export const DEVICE = 'kube-ipvs0';

/**
 * The kernel of the calling thread's network namespace; its sockets stay bound to it.
 *
 * @throws KernelError ENOENT (`isNotFound`) without ip_vs; ERR_NETLINK_SOCKET
 */
export function openIpvsKernel(family: IpFamily): IpvsKernel {
  return openTogether((keep) => {
    const generic = keep(Netlink.open(NETLINK_GENERIC));
    const ipvs = resolveFamily(generic, IPVS_GENL_NAME);
    const route = keep(Netlink.openRoute());
    const sets = keep(new SetTable(family));
    return new NetlinkKernel(family, { generic, ipvs, route, sets });
  });
}

interface Sockets {
  readonly generic: Netlink;
  readonly route: Netlink;
  readonly ipvs: IpvsFamily;
  readonly sets: SetTable;
}

class NetlinkKernel implements IpvsKernel {
  readonly family: IpFamily;
  readonly #sockets: Sockets;
  /** Of kube-ipvs0, as it was when last looked for. */
  #device = 0;

  constructor(family: IpFamily, sockets: Sockets) {
    this.family = family;
    this.#sockets = sockets;
  }

  listServers() {
    const { generic, ipvs } = this.#sockets;
    const servers = generic.dump(virtualServerListing(ipvs)).map(decodeVirtualServer);
    return servers.filter(({ key }) => familyOf(key) === this.family);
  }

  listDestinations(key: Parameters<IpvsKernel['listDestinations']>[0]) {
    const { generic, ipvs } = this.#sockets;
    return generic.dump(destinationListing(ipvs, key)).map((payload) => decodeDestination(payload, this.family));
  }

  listAddresses() {
    const { route } = this.#sockets;
    this.#device = getLink(route, { name: DEVICE })?.index ?? 0;
    const bound: IpAddress[] = [];
    const elsewhere: IpAddress[] = [];
    for (const { index, address, scope } of listAddresses(route, { family: this.family })) {
      if (index === this.#device) bound.push(address);
      else if (!isLoopback(address) && scope !== RT_SCOPE_LINK) elsewhere.push(address);
    }
    return { bound, elsewhere };
  }

  listElements() {
    return this.#sockets.sets.list();
  }

  wrong() {
    const { route, sets } = this.#sockets;
    const device = getLink(route, { name: DEVICE }) ? [] : [`device ${DEVICE}`];
    return [...device, ...sets.wrong().map((name) => `ipset ${name}`)];
  }

  prepare(): void {
    const { route, sets } = this.#sockets;
    try {
      if (!getLink(route, { name: DEVICE })) route.execute(newDummy(DEVICE));
    } catch (error) {
      // The other family was faster.
      if (!isExists(error)) throw error;
    }
    sets.prepare();
  }

  apply(operations: readonly Operation[]): readonly (KernelError | undefined)[] {
    const [first] = operations;
    if (!first) return [];
    return this.#socketOf(SUBSYSTEM_OF[first.kind]).attempt(operations.map((operation) => this.#request(operation)));
  }

  removable(): string[] {
    const { device, ours, isAll } = this.#onDevice();
    return [
      ...ours.map(({ address }) => `address ${formatIp(address)} of ${DEVICE}`),
      ...(device && isAll ? [`device ${DEVICE}`] : []),
      ...this.#sockets.sets.present().map((name) => `ipset ${name}`),
    ];
  }

  removeAll(): void {
    const { route, sets } = this.#sockets;
    const { device, ours, isAll } = this.#onDevice();
    for (const each of ours) route.attempt([deleteAddress(each)]);
    if (device && isAll) ifPresent(() => route.execute(deleteLink({ index: device.index })));
    sets.removeAll();
  }

  /** Our device, its addresses of this family, and whether it has no others. */
  #onDevice() {
    const { route } = this.#sockets;
    const link = getLink(route, { name: DEVICE });
    const device = link?.kind === 'dummy' ? link : undefined;
    const addresses = device ? listAddresses(route, { index: device.index }) : [];
    const ours = addresses.filter(({ address }) => address.family === this.family);
    return { device, ours, isAll: ours.length === addresses.length };
  }

  close(): void {
    const { generic, route, sets } = this.#sockets;
    generic.close();
    route.close();
    sets.close();
  }

  #socketOf(subsystem: Subsystem): Netlink {
    const { generic, route, sets } = this.#sockets;
    return { servers: generic, addresses: route, sets: sets.netlink }[subsystem];
  }

  #request(operation: Operation): NetlinkRequest {
    const { ipvs, sets } = this.#sockets;
    switch (operation.kind) {
      case 'newServer':
        return newVirtualServer(ipvs, operation.virtual);
      case 'setServer':
        return setVirtualServer(ipvs, operation.virtual);
      case 'deleteServer':
        return deleteVirtualServer(ipvs, operation.key);
      case 'newDestination':
        return newDestination(ipvs, operation.key, operation.destination);
      case 'setDestination':
        return setDestination(ipvs, operation.key, operation.destination);
      case 'deleteDestination':
        return deleteDestination(ipvs, operation.key, operation.destination);
      case 'addElement':
        return sets.add(operation.element);
      case 'deleteElement':
        return sets.remove(operation.element);
      case 'bind':
        return newAddress(this.#addressOf(operation.ip));
      case 'unbind':
        return deleteAddress(this.#addressOf(operation.ip));
      default:
        return operation satisfies never;
    }
  }

  #addressOf(address: IpAddress) {
    return { index: this.#device, address, prefixLength: addressBits(address.family) };
  }
}
