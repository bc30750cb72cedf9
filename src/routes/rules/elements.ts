import { type Cidr, type IpAddress, networkOf, parseCidr } from '../../core/index.ts';
import { type AddressSet, addressSetName, type BlockSetKind, blockSetName } from './table.ts';

/** An element of one of the sets, as text so that it can be a key: `peers-ipv4 c0a83202`. */
export type Element = string;

/** A packet to several hosts has no address that an answer could come from. */
const MULTICAST = [parseCidr('224.0.0.0/4'), parseCidr('ff00::/8')];

/** An address in a set of addresses. */
export function addressElement(kind: AddressSet, { family, bytes }: IpAddress): Element {
  return elementText(addressSetName(kind, family), bytes);
}

/** A block in the set of those of its length. Host bits do not matter. */
export function blockElement(kind: BlockSetKind, { address, prefixLength }: Cidr): Element {
  const { family } = address;
  const set = blockSetName({ kind, family, prefixLength });
  return elementText(set, networkOf(address, prefixLength).bytes);
}

/** An element by its set and its key. */
export function elementText(set: string, key: Uint8Array): Element {
  return `${set} ${Buffer.from(key).toString('hex')}`;
}

/** The name of its set, and its key in hexadecimal. */
export function partsOf(element: Element): readonly [set: string, key: string] {
  const space = element.indexOf(' ');
  return [element.slice(0, space), element.slice(space + 1)];
}

/** Elements that are wanted whatever Nodes there are. */
export function fixedElements(sources: readonly Cidr[], exempt: readonly Cidr[]): Element[] {
  return [
    ...sources.map((range) => blockElement('masqueraded', range)),
    ...[...MULTICAST, ...exempt].map((range) => blockElement('kept', range)),
  ];
}
