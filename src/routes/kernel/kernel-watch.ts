import {
  addressBits,
  type Cidr,
  cidrEquals,
  formatIp,
  type IpAddress,
  type IpFamily,
  ipEquals,
  networkOf,
  specialRange,
} from '../../core/index.ts';
import {
  type InterfaceAddress,
  type Link,
  type NetworkEvent,
  type NetworkWatch,
  watchNetwork,
} from '../../netlink/route/index.ts';
import { IFF_LOWER_UP, IFF_UP } from '../../netlink/uapi/index.ts';
import { RTPROT_NODEPLANE } from './route-object.ts';

/** A link that routes rest on (the one that leads to the other nodes, or a device of ours, by name), or that is in the way of ours. */
type Role = 'underlay' | 'obstacle' | `device ${string}`;

/**
 * Notices that others changed our routes, a link they rest on, which networks are on that, or which link has the node's
 * address. Links are compared with what was last read of them: the kernel tells of every link of every pod, and of each
 * several times. Switching a link off takes its routes without a word, and the loss of its carrier its nexthop objects
 * with their routes (nexthop_flush_dev), so that the link is all there is to go by.
 */
export class KernelWatch {
  readonly #family: IpFamily;
  readonly #ownPort: number;
  readonly #links = new Map<Role, Pick<Link, 'index' | 'name' | 'flags' | 'mtu'>>();
  /** The node's own, where one is known, and the index of the link that has it, where one has. */
  #address: IpAddress | undefined;
  #addressAt: number | undefined;
  /** Of the link that leads to the other nodes. */
  #underlayAddresses: readonly Cidr[] = [];
  #tunnel: number | undefined;
  #tunnelIsOurs = false;
  /** Whose neighbour entries we have just deleted, as text. */
  #ownDeletions: ReadonlySet<string> = new Set();
  #stream: NetworkWatch | undefined;

  /** @param ownPort of the conversation whose changes are our own */
  constructor(family: IpFamily, ownPort: number) {
    this.#family = family;
    this.#ownPort = ownPort;
  }

  /** What was just read of a link. */
  seen(role: Role, link: Link | undefined): void {
    if (link) this.#links.set(role, link);
    else this.#links.delete(role);
  }

  /** The node's address, by which the underlay was just looked for or that was found there, and the index of the link that has it. */
  addressIs(address: IpAddress | undefined, index: number | undefined): void {
    this.#address = address;
    this.#addressAt = index;
  }

  /** What was just read of the link that leads to the other nodes: its addresses, each with the prefix of its network. */
  underlayHas(addresses: readonly Cidr[]): void {
    this.#underlayAddresses = addresses;
  }

  /**
   * We have changed our device: what the kernel has told of it until now is no news. It does not say of links who changed
   * them, and whoever changes our device reads it again, and what is on it.
   */
  tunnelChanged(): void {
    this.#tunnelIsOurs = true;
    this.#stream?.catchUp();
    this.#tunnelIsOurs = false;
  }

  /** We have deleted the entries of these neighbours: the kernel tells so without a word of who did it. */
  neighboursDeleted(ips: readonly IpAddress[]): void {
    if (ips.length === 0 || !this.#stream) return;
    this.#ownDeletions = new Set(ips.map(formatIp));
    this.#stream.catchUp();
    this.#ownDeletions = new Set();
  }

  /** The index of our device, whose neighbours matter. */
  tunnelIs(index: number | undefined): void {
    if (index === this.#tunnel) return;
    this.#tunnel = index;
    this.#stream?.narrow(this.#interest());
  }

  /** Calls `changed` from now on, until `close`. Throws ERR_NETLINK_SOCKET. */
  open(changed: () => void): { close(): void } {
    this.#stream = watchNetwork(this.#interest(), (event) => {
      if (this.#concernsUs(event)) changed();
    });
    return this.#stream;
  }

  #interest(): Parameters<typeof watchNetwork>[0] {
    return {
      links: true,
      addresses: true,
      protocols: [RTPROT_NODEPLANE],
      neighbourLinks: this.#tunnel === undefined ? [] : [this.#tunnel],
      exceptFrom: [this.#ownPort],
    };
  }

  #concernsUs(event: NetworkEvent): boolean {
    switch (event.kind) {
      case 'lost':
        return true;
      case 'address': {
        const { address, index } = event.address;
        const hasChanged = this.#changesNetworks(event.address, event.deleted);
        if (!this.#isOwn(address)) return hasChanged;
        // Without it nothing can be done: where it comes, or comes back to, there are no routes. A renewed lease is told, too.
        const isKnown = this.#addressAt === index;
        if (event.deleted && isKnown) this.#addressAt = undefined;
        return !event.deleted && !isKnown;
      }
      case 'route':
        return event.route.family === this.#family;
      case 'nexthop':
        return event.nexthop.family === this.#family;
      case 'neighbour': {
        // FDB entries are told whoever changes them, so that ours cannot be told from others'.
        const { family, ip } = event.neighbour;
        return (
          !this.#tunnelIsOurs &&
          event.deleted &&
          family === this.#family &&
          ip !== undefined &&
          specialRange(ip) === undefined &&
          !this.#ownDeletions.has(formatIp(ip))
        );
      }
      case 'link':
        return this.#isOther(event.link, event.deleted);
    }
  }

  /** Nodes in a network that comes to the link are on it from now on; those in one that went are not. */
  #changesNetworks({ index, address, prefixLength }: InterfaceAddress, deleted: boolean): boolean {
    if (index !== this.#links.get('underlay')?.index || address.family !== this.#family) return false;
    if (specialRange(address) !== undefined || prefixLength === addressBits(address.family)) return false;
    const isSame = (one: Cidr) => one.prefixLength === prefixLength && ipEquals(one.address, address);
    const others = this.#underlayAddresses.filter((one) => !isSame(one));
    const wasThere = others.length < this.#underlayAddresses.length;
    this.#underlayAddresses = deleted ? others : [...others, { address, prefixLength }];
    if (wasThere !== deleted) return false;
    const network = (one: Cidr) => ({ ...one, address: networkOf(one.address, one.prefixLength) });
    const its = network({ address, prefixLength });
    return !others.some((one) => cidrEquals(network(one), its));
  }

  /** While none is known, as where a link is named that has none yet, any may be it. */
  #isOwn(address: IpAddress): boolean {
    if (this.#address) return ipEquals(address, this.#address);
    return address.family === this.#family && specialRange(address) === undefined;
  }

  #isOther({ index, name, flags, mtu }: Link, deleted: boolean): boolean {
    for (const [role, known] of this.#links) {
      if (role.startsWith('device ') && this.#tunnelIsOurs) continue;
      if (known.index !== index) continue;
      // Linux renames links that are up since 6.3, and nothing else of them changes then.
      if (deleted || known.name !== name || carrying(known.flags) !== carrying(flags) || known.mtu !== mtu) return true;
    }
    return false;
  }
}

/** Whether a link is switched on, and whether it has a carrier. */
function carrying(flags: number): number {
  return flags & (IFF_UP | IFF_LOWER_UP);
}
