import {
  addressBits,
  type Cidr,
  formatIp,
  formatIpPort,
  IP_PROTOCOLS,
  type IpFamily,
  lastOf,
  networkOf,
  readBe16,
} from '../../../core/index.ts';
import { interfaceName, type NftElement, type NftElements, networkOrder16 } from '../../../netlink/nftables/index.ts';
import { LOOPBACK } from '../../../nft/index.ts';
import type { PortMappingSettings } from '../../config/feature-config.ts';
import type { WantedAttachment } from '../wanted-attachment.ts';
import { type MappedPort, mappedPorts } from './mapped-port.ts';
import { ownerComment } from './owner-comment.ts';
import { masqueradeChain } from './pod-chains.ts';
import { elementsIn } from './pod-ruleset.ts';
import { type PodSetKind, podSet } from './pod-table.ts';

// Sets and maps of nft_tables have their keys and values in fields of whole 32-bit words.

/** IPPROTO_* by the protocol's name in a configuration. */
export const IPPROTO: Record<MappedPort['protocol'], number> = {
  tcp: IP_PROTOCOLS.TCP,
  udp: IP_PROTOCOLS.UDP,
  sctp: IP_PROTOCOLS.SCTP,
};
const PROTOCOLS = ['tcp', 'udp', 'sctp'] as const;

/** The elements by which what the pod sends is masqueraded: one for each of its addresses. */
export function masqueradeElements({
  key,
  ips,
  features,
}: Pick<WantedAttachment, 'key' | 'ips' | 'features'>): NftElements[] {
  return ips.map(({ address: subnet }) => {
    const { family, bytes } = subnet.address;
    const verdict = { kind: 'goto', chain: masqueradeChain(subnet, features.ipMasq?.except).chain.name } as const;
    return elementsOf('masquerade', family, [{ key: bytes, verdict, comment: ownerComment(key) }]);
  });
}

/** The elements by which ports of the node lead to the pod; none without mappings. Throws CniError as `mappedPorts`. */
export function portElements(attachment: WantedAttachment): NftElements[] {
  const settings = attachment.features.portMappings;
  if (!settings) return [];
  const comment = ownerComment(attachment.key);
  const hairpins = new Map<string, NftElements>();
  const ports = mappedPorts(attachment);
  for (const port of ports) {
    for (const clients of hairpinClients(port, settings, attachment.reach.isShared)) {
      const element = { ...hairpinRange(port, clients), comment };
      // Ports of several host addresses share them.
      hairpins.set(Buffer.from(element.key).toString('hex'), elementsOf('hairpin', port.family, [element]));
    }
  }
  return [
    ...ports.map((port) =>
      elementsOf(port.hostIp ? 'address-ports' : 'ports', port.family, [
        { key: portKey(port), data: portTarget(port), comment },
      ]),
    ),
    ...hairpins.values(),
  ];
}

/** The elements by which the pod's ingress policy is in force; none for `open`. */
export function ingressElements({ key, features, reach, ips }: WantedAttachment): NftElements[] {
  const policy = features.firewall?.ingressPolicy ?? 'open';
  if (policy === 'open') return [];
  const kinds =
    policy === 'isolated' ? (['ingress-policy', 'ingress-isolated'] as const) : (['ingress-policy'] as const);
  const link = interfaceName(reach.link);
  return ips.flatMap(({ address: { address } }) =>
    kinds.map((kind) =>
      elementsOf(kind, address.family, [{ key: fields(link, address.bytes), comment: ownerComment(key) }]),
    ),
  );
}

/** The mappings behind elements of the sets `ports` and `address-ports`; none for those of other sets. */
export function mappedPortOf({ set, elements }: NftElements): Omit<MappedPort, 'containerPort' | 'hostIp'>[] {
  const { kind, family } = parseSetName(set);
  if (kind !== 'ports' && kind !== 'address-ports') return [];
  const size = addressBits(family) / 8;
  return elements.flatMap(({ key, data }) => {
    const at = kind === 'ports' ? 0 : size;
    const protocol = PROTOCOLS.find((name) => IPPROTO[name] === key[at]);
    if (!protocol || !data || data.length < size) return [];
    const address = { family, bytes: Uint8Array.from(data.subarray(0, size)) };
    const pod = { address, prefixLength: addressBits(family) };
    return [{ family, protocol, hostPort: readBe16(key, at + 4), pod }];
  });
}

/** What an element of a port set is about, for messages: `Host port 8080/tcp`, `Host port 192.0.2.1:8080/tcp`. */
export function describePortKey({ set }: NftElements, { key }: NftElement): string {
  const { kind, family } = parseSetName(set);
  const hostIp = kind === 'address-ports' ? key.subarray(0, addressBits(family) / 8) : new Uint8Array();
  const protocol = PROTOCOLS.find((name) => IPPROTO[name] === key[hostIp.length]);
  const port = readBe16(key, hostIp.length + 4);
  const where = hostIp.length > 0 ? formatIpPort({ family, bytes: hostIp }, port) : String(port);
  return `Host port ${where}/${protocol}${hostIp.length === 0 ? ` (${family})` : ''}`;
}

/** The key of an element of a port set as `nft` takes it: `{ tcp . 8080 }`, `{ 192.0.2.1 . tcp . 8080 }`. */
export function portElementText({ set }: Pick<NftElements, 'set'>, { key }: NftElement): string {
  // It stands for all that have no element of their own.
  if (key.length === 0) return '{ * }';
  const { kind, family } = parseSetName(set);
  const hostIp = kind === 'address-ports' ? key.subarray(0, addressBits(family) / 8) : new Uint8Array();
  const protocol = PROTOCOLS.find((name) => IPPROTO[name] === key[hostIp.length]) ?? key[hostIp.length];
  const address = hostIp.length > 0 ? [formatIp({ family, bytes: hostIp })] : [];
  return `{ ${[...address, protocol, readBe16(key, hostIp.length + 4)].join(' . ')} }`;
}

function parseSetName(name: string): { readonly kind: string; readonly family: IpFamily } {
  const dash = name.lastIndexOf('-');
  return { kind: name.slice(0, dash), family: name.slice(dash + 1) === 'ipv4' ? 'IPv4' : 'IPv6' };
}

function portKey({ hostIp, protocol, hostPort }: MappedPort): Uint8Array {
  return fields(...(hostIp ? [hostIp.bytes] : []), Uint8Array.of(IPPROTO[protocol]), networkOrder16(hostPort));
}

function portTarget({ pod, containerPort }: MappedPort): Uint8Array {
  return fields(pod.address.bytes, networkOrder16(containerPort));
}

/**
 * Clients of a mapped port that must be masqueraded, because the pod's answers would not come back through the node, which
 * has to undo the translation: the pod itself, its neighbours on the bridge, and programs of the node that call 127.0.0.1.
 */
function hairpinClients(port: MappedPort, { snat, masqAll }: PortMappingSettings, hasNeighbours: boolean): Cidr[] {
  const { family, pod } = port;
  const { address } = pod;
  if (!snat) return [];
  if (masqAll) return [{ address: { family, bytes: new Uint8Array(address.bytes.length) }, prefixLength: 0 }];
  const neighbours = hasNeighbours ? pod : { address, prefixLength: addressBits(family) };
  return family === 'IPv4' ? [neighbours, LOOPBACK.IPv4] : [neighbours];
}

function hairpinRange({ protocol, hostPort, pod }: MappedPort, clients: Cidr): NftElement {
  const { bytes: first } = networkOf(clients.address, clients.prefixLength);
  const ofPort = [Uint8Array.of(IPPROTO[protocol]), networkOrder16(hostPort), pod.address.bytes];
  return { key: fields(...ofPort, first), keyEnd: fields(...ofPort, lastOf(clients).bytes) };
}

function elementsOf(kind: PodSetKind, family: MappedPort['family'], elements: readonly NftElement[]): NftElements {
  return elementsIn(podSet(kind, family), elements);
}

/** A concatenation: each field filled up to whole words. */
export function fields(...parts: readonly Uint8Array[]): Uint8Array {
  const padded = parts.flatMap((part) => [part, new Uint8Array((4 - (part.length % 4)) % 4)]);
  return Uint8Array.from(Buffer.concat(padded));
}
