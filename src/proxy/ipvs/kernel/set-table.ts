import { addressBits, IP_PROTOCOLS, type IpFamily, ipProtocolName, KernelError } from '../../../core/index.ts';
import { Netlink, type NetlinkRequest, withNetlink } from '../../../netlink/index.ts';
import {
  addMember,
  deleteIpSet,
  deleteMember,
  getSetTypeRevision,
  type IpSet,
  listIpSets,
  listMembers,
  newIpSet,
  type SetMember,
  swapIpSets,
} from '../../../netlink/ipset/index.ts';
import { NETLINK_NETFILTER } from '../../../netlink/uapi/index.ts';
import {
  type Element,
  kernelSetName,
  MARK_SET,
  SET_NAMES,
  SETS,
  type SetElement,
  type SetName,
  type SetType,
} from '../compile/sets.ts';

/** Bitmaps are of either family; as kube-proxy makes them. */
const PORTS = [0, 65_535] as const;
/** kube-proxy's 65536 were too few for some; memory is only used for members that are there. */
const MAX_ELEMENTS = 1 << 20;
/** Under this name a set of the right shape waits to take the place of one of another. */
const REPLACEMENT = 'KUBE-NODEPLANE-NEW';

/** Our ipsets of one family. */
export class SetTable {
  /** The conversation its requests are for. */
  readonly netlink: Netlink;
  readonly #family: IpFamily;
  #revisions: ReadonlyMap<SetType, number> | undefined;

  /** In the network namespace of the calling thread. Throws ERR_NETLINK_SOCKET. */
  constructor(family: IpFamily) {
    this.#family = family;
    this.netlink = Netlink.open(NETLINK_NETFILTER);
  }

  /** Members of those sets that exist. Throws KernelError, ERR_NETLINK_DECODE. */
  list(): SetElement[] {
    const present = this.#present();
    return SET_NAMES.flatMap((set) => {
      const name = kernelSetName(this.#family, set);
      if (!this.#fits(set, present.get(name))) return [];
      return listMembers(this.netlink, name).flatMap((member) => {
        const element = decodeElement(SETS[set], member);
        return element ? [{ set, element }] : [];
      });
    });
  }

  /** Names of those that are missing or of another type. */
  wrong(): string[] {
    const present = this.#present();
    const names = SET_NAMES.map((set) => [set, kernelSetName(this.#family, set)] as const);
    return names.filter(([set, name]) => !this.#fits(set, present.get(name))).map(([, name]) => name);
  }

  /** Makes those that are missing; one of another shape is replaced by an empty one. Throws KernelError. */
  prepare(): void {
    const present = this.#present();
    for (const set of SET_NAMES) {
      const name = kernelSetName(this.#family, set);
      const held = present.get(name);
      if (this.#fits(set, held)) continue;
      if (!held) {
        this.netlink.execute(this.#creation(set, name));
        continue;
      }
      // The kernel only exchanges sets of one type and family; another type must give way, and no rule of ours knows it.
      const replacement = held.type === SETS[set] && held.family === this.#shape(set, name).family;
      if (replacement) {
        this.netlink.attempt([deleteIpSet(REPLACEMENT)]);
        this.netlink.execute(this.#creation(set, REPLACEMENT));
        this.netlink.execute(swapIpSets(REPLACEMENT, name));
        this.netlink.execute(deleteIpSet(REPLACEMENT));
      } else {
        this.netlink.execute(deleteIpSet(name));
        this.netlink.execute(this.#creation(set, name));
      }
    }
  }

  add({ set, element }: SetElement): NetlinkRequest {
    return addMember(kernelSetName(this.#family, set), encodeElement(element));
  }

  remove({ set, element }: SetElement): NetlinkRequest {
    return deleteMember(kernelSetName(this.#family, set), encodeElement(element));
  }

  /** Removes all of them. Throws KernelError for one that a rule still uses. */
  removeAll(): void {
    this.netlink.execute(...this.present().map(deleteIpSet));
  }

  /** Names of those that are there, of whatever shape. */
  present(): string[] {
    const present = this.#present();
    return SET_NAMES.map((set) => kernelSetName(this.#family, set)).filter((name) => present.has(name));
  }

  close(): void {
    this.netlink.close();
  }

  #present(): ReadonlyMap<string, IpSet> {
    return new Map(listIpSets(this.netlink).map((set) => [set.name, set]));
  }

  #shape(set: SetName, name: string): IpSet {
    const type = SETS[set];
    const bitmap = type === 'bitmap:port';
    return {
      name,
      type,
      family: bitmap ? undefined : this.#family,
      maxElements: bitmap ? undefined : MAX_ELEMENTS,
      ports: bitmap ? PORTS : undefined,
      marks: set === MARK_SET,
    };
  }

  /** Whether a set can be used as it is; one of kube-proxy, which holds fewer members, until the next start of the node. */
  #fits(set: SetName, held: IpSet | undefined): boolean {
    const shape = this.#shape(set, held?.name ?? '');
    return held !== undefined && held.type === shape.type && held.family === shape.family && held.marks === shape.marks;
  }

  #creation(set: SetName, name: string): NetlinkRequest {
    this.#revisions ??= new Map(
      [...new Set(Object.values(SETS))].map((type) => [
        type,
        getSetTypeRevision(this.netlink, type, type === 'bitmap:port' ? undefined : this.#family),
      ]),
    );
    return newIpSet(this.#shape(set, name), this.#revisions.get(SETS[set])!);
  }
}

/** Types of sets this kernel has not. */
export function missingSetTypes(): SetType[] {
  return withNetlink(NETLINK_NETFILTER, (netlink) =>
    [...new Set(Object.values(SETS))].filter((type) => {
      try {
        getSetTypeRevision(netlink, type, type === 'bitmap:port' ? undefined : 'IPv4');
        return false;
      } catch (error) {
        if (error instanceof KernelError) return true;
        throw error;
      }
    }),
  );
}

function encodeElement(element: Element): SetMember {
  switch (element.type) {
    case 'hash:ip':
      return { address: element.address };
    case 'bitmap:port':
      return { port: element.port };
    case 'hash:ip,port':
      return { ...target(element), mark: element.mark };
    case 'hash:ip,port,ip':
      return { ...target(element), second: element.second };
    case 'hash:ip,port,net':
      return { ...target(element), second: element.network, secondPrefixLength: element.prefixLength };
    default:
      return element satisfies never;
  }
}

function target({
  address,
  port,
  protocol,
}: Extract<Element, { type: 'hash:ip,port' | 'hash:ip,port,ip' | 'hash:ip,port,net' }>) {
  return { address, port, protocol: IP_PROTOCOLS[protocol] };
}

/** Undefined for a member no proxy makes. */
function decodeElement(type: SetType, member: SetMember): Element | undefined {
  const { address, port, second, secondPrefixLength, mark } = member;
  const protocol = member.protocol === undefined ? undefined : ipProtocolName(member.protocol);
  if (type === 'bitmap:port') return port === undefined ? undefined : { type, port };
  if (!address) return undefined;
  if (type === 'hash:ip') return { type, address };
  if (port === undefined || !protocol) return undefined;
  if (type === 'hash:ip,port') return { type, address, protocol, port, ...(mark !== undefined && { mark }) };
  if (!second) return undefined;
  if (type === 'hash:ip,port,ip') return { type, address, protocol, port, second };
  const prefixLength = secondPrefixLength ?? addressBits(second.family);
  return { type, address, protocol, port, network: second, prefixLength };
}
