import { formatIp, type IpAddress, type IpFamily } from '../../core/index.ts';
import type { Netlink } from '../../netlink/index.ts';
import { type Link, listLinks, listNeighbours, type Neighbour } from '../../netlink/route/index.ts';
import { NUD_PERMANENT } from '../../netlink/uapi/index.ts';
import { DEVICE_ALIAS } from '../kernel/route-kernel.ts';
import { formatMac } from '../plan/mac.ts';
import { TUNNEL_NAMES } from '../plan/tunnel.ts';

/** Links, neighbours and FDB entries of one family, each listed once, when somebody asks for the first of them. */
export class KernelFacts {
  readonly #netlink: Netlink;
  readonly #family: IpFamily;
  readonly #links: ReadonlyMap<number, Link>;
  readonly #neighbours = new Map<number, Map<string, Neighbour>>();
  readonly #fdbs = new Map<number, Map<string, IpAddress>>();
  readonly #used = new Set<string>();

  /** Throws KernelError. */
  constructor(netlink: Netlink, family: IpFamily) {
    this.#netlink = netlink;
    this.#family = family;
    this.#links = new Map(listLinks(netlink).map((link) => [link.index, link]));
  }

  link(index: number): Link | undefined {
    return this.#links.get(index);
  }

  /** What a link's table of neighbours says about an address. */
  neighbour(index: number, ip: IpAddress): Neighbour | undefined {
    const text = formatIp(ip);
    this.#used.add(`neighbour ${index} ${text}`);
    return this.#neighboursOf(index).get(text);
  }

  /** Where a device's FDB sends frames for a MAC address. */
  remoteOf(index: number, mac: Uint8Array): IpAddress | undefined {
    const text = formatMac(mac);
    this.#used.add(`FDB ${index} ${text}`);
    return this.#fdbOf(index).get(text);
  }

  /** The permanent entries of our VXLAN device that nobody has asked for, in words. */
  unused(): string[] {
    const name = TUNNEL_NAMES[this.#family];
    const device = [...this.#links.values()].find((link) => link.name === name && link.alias === DEVICE_ALIAS);
    if (!device) return [];
    const { index } = device;
    return [
      ...[...this.#neighboursOf(index)]
        .filter(([ip, { state }]) => state === NUD_PERMANENT && !this.#used.has(`neighbour ${index} ${ip}`))
        .map(([ip]) => `${name} has a neighbour ${ip} that no route uses`),
      ...[...this.#fdbOf(index).keys()]
        .filter((mac) => !this.#used.has(`FDB ${index} ${mac}`))
        .map((mac) => `${name} has an FDB entry for ${mac} that no route uses`),
    ];
  }

  #neighboursOf(index: number): ReadonlyMap<string, Neighbour> {
    let found = this.#neighbours.get(index);
    if (!found) {
      const listed = listNeighbours(this.#netlink, { family: this.#family, index });
      found = new Map(listed.flatMap((one) => (one.ip ? [[formatIp(one.ip), one]] : [])));
      this.#neighbours.set(index, found);
    }
    return found;
  }

  #fdbOf(index: number): ReadonlyMap<string, IpAddress> {
    let found = this.#fdbs.get(index);
    if (!found) {
      const listed = listNeighbours(this.#netlink, { family: 'bridge', index });
      found = new Map(listed.flatMap(({ ip, lladdr }) => (ip ? [[formatMac(lladdr), ip]] : [])));
      this.#fdbs.set(index, found);
    }
    return found;
  }
}
