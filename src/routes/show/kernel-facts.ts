import {
  addressBits,
  type Cidr,
  formatCidr,
  formatIp,
  formatMac,
  type IpAddress,
  type IpFamily,
} from '../../core/index.ts';
import { closing, type Netlink } from '../../netlink/index.ts';
import { type Link, listLinks, listNeighbours, type Neighbour } from '../../netlink/route/index.ts';
import { NUD_PERMANENT } from '../../netlink/uapi/index.ts';
import { getWireguard, openWireguard, type WireguardPeer } from '../../netlink/wireguard/index.ts';
import { DEVICE_ALIAS } from '../kernel/route-kernel.ts';
import { TUNNEL_NAMES, WIREGUARD_NAME } from '../plan/tunnel.ts';

/** Links, neighbours, FDB entries and WireGuard peers of one family, each listed once, when somebody asks for the first of them. */
export class KernelFacts {
  readonly #netlink: Netlink;
  readonly #family: IpFamily;
  readonly #links: ReadonlyMap<number, Link>;
  readonly #neighbours = new Map<number, Map<string, Neighbour>>();
  readonly #fdbs = new Map<number, Map<string, IpAddress>>();
  /** Of our WireGuard device, by the ranges of pods that are sent to them. */
  #peers: Map<string, WireguardPeer> | undefined;
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

  /** Whether a link is our WireGuard device. */
  isWireguard(index: number): boolean {
    return this.#ours(WIREGUARD_NAME)?.index === index;
  }

  /** The peer to which our WireGuard device sends packets for a range of pods. Throws KernelError: EPERM for who is not root. */
  peerOf(range: Cidr): WireguardPeer | undefined {
    const text = formatCidr(range);
    this.#used.add(`peer ${text}`);
    return this.#wireguardPeers().get(text);
  }

  /** What our tunnel devices have that nobody has asked for, in words. */
  unused(): string[] {
    return [...this.#unusedOfVxlan(), ...this.#unusedOfWireguard()];
  }

  #unusedOfWireguard(): string[] {
    return [...this.#wireguardPeers().keys()]
      .filter((range) => !this.#used.has(`peer ${range}`))
      .map((range) => `${WIREGUARD_NAME} has a peer for ${range} to which no route leads`);
  }

  #unusedOfVxlan(): string[] {
    const name = TUNNEL_NAMES[this.#family];
    const device = this.#ours(name);
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

  #ours(name: string): Link | undefined {
    return [...this.#links.values()].find((link) => link.name === name && link.alias === DEVICE_ALIAS);
  }

  #wireguardPeers(): ReadonlyMap<string, WireguardPeer> {
    if (this.#peers) return this.#peers;
    this.#peers = new Map();
    const device = this.#ours(WIREGUARD_NAME);
    if (!device) return this.#peers;
    const { netlink, family } = openWireguard();
    for (const peer of closing(netlink, () => getWireguard(netlink, family, device.index)).peers) {
      for (const range of peer.allowedIps) {
        const isNode = range.prefixLength === addressBits(range.address.family);
        if (range.address.family === this.#family && !isNode) this.#peers.set(formatCidr(range), peer);
      }
    }
    return this.#peers;
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
