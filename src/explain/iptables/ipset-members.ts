import { cidrContains, formatIp, ipFromBytes } from '../../core/index.ts';
import type { IpSet, SetMember } from '../../netlink/ipset/index.ts';
import type { InSet, IpSets, SetKey } from './facts.ts';
import { all, inNetwork, type Truth } from './values.ts';

/** What the kernel is asked for, or a fake. */
export interface IpSetReader {
  /** All sets, without members. */
  listSets(): readonly IpSet[];
  /** The members of one of them. */
  listMembers(name: string): readonly SetMember[];
  /** The name of the set with a number of the kernel's; undefined when nobody can tell. */
  getName(index: number): string | undefined;
}

type Part = 'address' | 'network' | 'port' | 'second';

/** The parts of the keys of the types that are known here, in the order of a rule's directions. */
const PARTS: Readonly<Record<string, readonly Part[]>> = {
  'hash:ip': ['address'],
  'hash:ip,port': ['address', 'port'],
  'hash:ip,port,ip': ['address', 'port', 'second'],
  'hash:ip,port,net': ['address', 'port', 'second'],
  'hash:net': ['network'],
  'hash:net,port': ['network', 'port'],
  'bitmap:port': ['port'],
};

/**
 * Sets of the kernel, each read when a rule first asks for it and kept for the same question. The kernel gives members out all
 * at once only; those of the types above are told, all others nobody here can tell.
 */
export class IpSetMembers implements IpSets {
  readonly #reader: IpSetReader;
  #sets: ReadonlyMap<string, IpSet> | undefined;
  readonly #members = new Map<string, readonly SetMember[]>();
  readonly #names = new Map<number, string | undefined>();

  constructor(reader: IpSetReader) {
    this.#reader = reader;
  }

  find(name: string, directions: readonly SetKey[], protocol: number): InSet | undefined {
    this.#sets ??= new Map(this.#reader.listSets().map((set) => [set.name, set]));
    const set = this.#sets.get(name);
    const parts = set && PARTS[set.type];
    if (!parts || set.isMasked || directions.length < parts.length) return undefined;
    const family = directions[0]!.address.length === 4 ? 'IPv4' : 'IPv6';
    // A set of the other family's addresses has none of these: the kernel refuses to look (ip_set_test).
    if (set.family !== undefined && set.family !== family) return undefined;
    let nearest: SetMember | undefined;
    for (const member of this.#membersOf(name)) {
      const found = all(parts.map((part, index) => fits(part, member, directions[index]!, protocol)));
      if (found === undefined) return undefined;
      if (found && (!nearest || lengthOf(member) > lengthOf(nearest))) nearest = member;
    }
    // Of members and exceptions that overlap the longest network decides (mtype_test_cidrs, net/netfilter/ipset/ip_set_hash_gen.h).
    if (!nearest || nearest.isException) return 'not there';
    return { mark: nearest.mark, markMask: nearest.markMask };
  }

  nameOf(index: number): string | undefined {
    if (!this.#names.has(index)) this.#names.set(index, this.#reader.getName(index));
    return this.#names.get(index);
  }

  #membersOf(name: string): readonly SetMember[] {
    const known = this.#members.get(name) ?? this.#reader.listMembers(name);
    this.#members.set(name, known);
    return known;
  }
}

/** Of the one network that a member has; one without is of a single address. */
function lengthOf({ prefixLength, secondPrefixLength }: SetMember): number {
  return secondPrefixLength ?? prefixLength ?? Number.POSITIVE_INFINITY;
}

function fits(part: Part, member: SetMember, { address, port }: SetKey, protocol: number): Truth {
  switch (part) {
    case 'address':
      return member.address && address.equals(member.address.bytes);
    case 'network': {
      const { address: network, prefixLength } = member;
      if (!network || prefixLength === undefined) return undefined;
      // Without text: block lists have tens of thousands.
      if (address.isKnown) return cidrContains({ address: network, prefixLength }, ipFromBytes(address.bytes));
      return inNetwork(address, `${formatIp(network)}/${prefixLength}`);
    }
    case 'second': {
      const { second, secondPrefixLength } = member;
      if (!second) return undefined;
      const network = `${formatIp(second)}${secondPrefixLength === undefined ? '' : `/${secondPrefixLength}`}`;
      return inNetwork(address, network);
    }
    case 'port': {
      // A bitmap has ports of every protocol.
      if (member.protocol !== undefined && member.protocol !== protocol) return false;
      return member.port === undefined ? undefined : port.equals(Uint8Array.of(member.port >> 8, member.port & 0xff));
    }
  }
}
