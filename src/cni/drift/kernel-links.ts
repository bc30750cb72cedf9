import { type Cidr, cidrEquals, formatCidr, formatIp, type IpAddress, networkOf, sameBytes } from '../../core/index.ts';
import type { Netlink } from '../../netlink/index.ts';
import {
  type BridgeVlan,
  type InterfaceAddress,
  type Link,
  listAddresses,
  listBridgeVlans,
  listLinks,
  listNeighbours,
  listRoutes,
  type Neighbour,
} from '../../netlink/route/index.ts';
import { NUD_PERMANENT, RT_TABLE_MAIN } from '../../netlink/uapi/index.ts';
import { hostMac, isOf } from '../link/host-link.ts';
import type { AttachmentKey } from '../protocol/attachment-key.ts';

/** The node's links and what belongs to them, each kind listed once, when it is first asked for. */
export class KernelLinks {
  readonly host: Netlink;
  readonly #links: readonly Link[];
  readonly #byName: ReadonlyMap<string, Link>;
  readonly #byAlias: ReadonlyMap<string, Link>;
  #addresses: ReadonlyMap<number, readonly InterfaceAddress[]> | undefined;
  #routes: ReadonlySet<string> | undefined;
  #neighbours: ReadonlyMap<string, Neighbour> | undefined;
  #vlans: readonly BridgeVlan[] | undefined;

  /** @throws KernelError */
  constructor(host: Netlink) {
    this.host = host;
    this.#links = listLinks(host);
    this.#byName = new Map(this.#links.map((link) => [link.name, link]));
    // The device that limits a pod's traffic has the same alias.
    const ends = this.#links.filter(({ kind, alias }) => kind === 'veth' && alias !== '');
    this.#byAlias = new Map(ends.map((link) => [link.alias, link]));
  }

  named(name: string): Link | undefined {
    return this.#byName.get(name);
  }

  /** Of a link that is there, or what stands for one that is not. */
  nameOf(index: number): string {
    return this.#links.find((link) => link.index === index)?.name ?? `the link of index ${index}`;
  }

  /** The host's end of an attachment's veth pair, also under another name or without its alias. */
  hostLink(key: AttachmentKey): Link | undefined {
    const isEnd = (link: Link) => isOf(link, key) || (link.kind === 'veth' && sameBytes(link.address, hostMac(key)));
    return [this.#byName.get(key.hostName), this.#byAlias.get(key.alias)].find((link) => link && isEnd(link));
  }

  /** The least MTU of a bridge's ports; undefined when it has none. */
  leastMtuOfPorts(bridge: number): number | undefined {
    const mtus = this.#links.filter(({ master }) => master === bridge).map(({ mtu }) => mtu);
    return mtus.length > 0 ? Math.min(...mtus) : undefined;
  }

  /** @param wanted its prefix has to be the same */
  hasAddress(index: number, wanted: Cidr): boolean {
    this.#addresses ??= groupedByLink(listAddresses(this.host));
    return (this.#addresses.get(index) ?? []).some((has) => cidrEquals(has, wanted));
  }

  /** Whether the main table has a route to the network that leads out of the link. */
  hasRoute(network: Cidr, index: number): boolean {
    this.#routes ??= new Set(
      listRoutes(this.host, { table: RT_TABLE_MAIN }).map(({ destination, outInterface }) =>
        routeText(destination, outInterface),
      ),
    );
    return this.#routes.has(routeText(network, index));
  }

  /** The MAC entered for good for an address behind a link. */
  permanentNeighbour(index: number, ip: IpAddress): Uint8Array | undefined {
    this.#neighbours ??= new Map(
      listNeighbours(this.host).flatMap((one) => (one.ip ? [[`${formatIp(one.ip)} ${one.index}`, one]] : [])),
    );
    const found = this.#neighbours.get(`${formatIp(ip)} ${index}`);
    return found && (found.state & NUD_PERMANENT) !== 0 ? found.lladdr : undefined;
  }

  vlansOf(index: number): readonly BridgeVlan[] {
    this.#vlans ??= listBridgeVlans(this.host);
    return this.#vlans.filter((vlan) => vlan.index === index);
  }
}

function groupedByLink(addresses: readonly InterfaceAddress[]): Map<number, InterfaceAddress[]> {
  const byLink = new Map<number, InterfaceAddress[]>();
  for (const address of addresses) {
    const known = byLink.get(address.index);
    if (known) known.push(address);
    else byLink.set(address.index, [address]);
  }
  return byLink;
}

function routeText({ address, prefixLength }: Cidr, index: number): string {
  return `${formatCidr({ address: networkOf(address, prefixLength), prefixLength })} ${index}`;
}
