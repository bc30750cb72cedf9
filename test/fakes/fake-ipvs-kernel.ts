import {
  formatIp,
  formatIpPort,
  type IpAddress,
  type IpFamily,
  ipFromBytes,
  KernelError,
  networkOf,
  parseIp,
  specialRange,
} from '../../src/core/index.ts';
import {
  type ForeignSettings,
  familyOf,
  type ListedDestination,
  type ListedVirtualServer,
  type VirtualServerKey,
} from '../../src/netlink/ipvs/index.ts';
import {
  elementKey,
  elementText,
  type IpvsKernel,
  kernelSetName,
  type Operation,
  SET_NAMES,
  type SetElement,
  serverKey,
} from '../../src/proxy/ipvs/index.ts';

const ERRNO = {
  ENOENT: 2,
  ESRCH: 3,
  EEXIST: 17,
  ENODEV: 19,
  EINVAL: 22,
  EADDRNOTAVAIL: 99,
  IPSET_ERR_INVALID_CIDR: 4104,
} as const;
type Refusal = keyof typeof ERRNO;
const NO_STATISTICS = { connections: 0n, packetsIn: 0n, packetsOut: 0n, bytesIn: 0n, bytesOut: 0n };

/** The schedulers the fake has modules for. */
const SCHEDULERS = ['rr', 'wrr', 'lc', 'sh', 'mh'];
/** IP_VS_SCHEDNAME_MAXLEN of <linux/ip_vs.h> is 16 with its terminating zero. */
const LONGEST_SCHEDULER = 15;

/** A destination with its connections, which a test opens and closes. */
interface FakeDestination extends ForeignSettings {
  address: IpAddress;
  port: number;
  weight: number;
  connections: number;
}

/**
 * A kernel with IPVS, addresses and ipsets in memory, for one family. It refuses what the real one refuses, to which
 * test/vm/ipvs-fake.test.ts holds it: two of a kind, changes of what is not there, schedulers it has no module for, destinations
 * no packet can be sent to, members of sets and addresses of a device that were not made. Counts what it is asked.
 */
export class FakeIpvsKernel implements IpvsKernel {
  readonly family: IpFamily;
  readonly servers = new Map<
    string,
    { server: Omit<ListedVirtualServer, 'statistics'>; destinations: Map<string, FakeDestination> }
  >();
  readonly elements = new Map<string, SetElement>();
  readonly bound = new Map<string, IpAddress>();
  readonly elsewhere = new Map<string, IpAddress>();
  /** Every change that was asked for, in order. */
  readonly operations: Operation[] = [];
  /** Listings of destinations, one for each virtual server looked at. */
  destinationListings = 0;
  prepared = false;
  #isOpen = true;
  /** Refuses an operation with this errno; undefined lets it be. */
  refuse: (operation: Operation) => Refusal | undefined = () => undefined;

  constructor(family: IpFamily = 'IPv4', addresses: readonly string[] = []) {
    this.family = family;
    for (const text of addresses) this.elsewhere.set(text, parseIp(text));
  }

  listServers(): ListedVirtualServer[] {
    this.#asked();
    return [...this.servers.values()].map(({ server }) => ({ ...server, statistics: NO_STATISTICS }));
  }

  listDestinations(key: VirtualServerKey): ListedDestination[] {
    this.#asked();
    this.destinationListings++;
    return [...(this.servers.get(serverKey(key))?.destinations.values() ?? [])].map(({ connections, ...rest }) => ({
      ...rest,
      activeConnections: connections,
      inactiveConnections: 0,
      persistentConnections: 0,
    }));
  }

  listAddresses() {
    this.#asked();
    return { bound: [...this.bound.values()], elsewhere: [...this.elsewhere.values()] };
  }

  listElements(): SetElement[] {
    this.#asked();
    return [...this.elements.values()];
  }

  wrong(): string[] {
    this.#asked();
    if (this.prepared) return [];
    return ['device kube-ipvs0', ...SET_NAMES.map((name) => `ipset ${kernelSetName(this.family, name)}`)];
  }

  prepare(): void {
    this.#asked();
    this.prepared = true;
  }

  apply(operations: readonly Operation[]): (KernelError | undefined)[] {
    this.#asked();
    return operations.map((operation) => {
      this.operations.push(operation);
      const name = this.refuse(operation) ?? this.#apply(operation);
      if (!name) return undefined;
      const meaning = name.startsWith('IPSET_') ? { name, text: 'refused by ipset' } : undefined;
      return new KernelError('ERR_NETLINK_ACK', { operation: operation.kind, errno: ERRNO[name], meaning });
    });
  }

  removable(): string[] {
    this.#asked();
    return [...this.bound.keys()].map((address) => `address ${address}`);
  }

  removeAll(): void {
    this.#asked();
    this.bound.clear();
    this.elements.clear();
    this.prepared = false;
  }

  /** From now on whatever is asked throws, as sockets that are closed do. */
  close(): void {
    this.#isOpen = false;
  }

  /** As a new process opens it: what it holds is still there. */
  reopened(): this {
    this.#isOpen = true;
    return this;
  }

  /** How many connections a destination has from now on. */
  setConnections(server: string, endpoint: string, connections: number): void {
    const destination = this.servers.get(server)?.destinations.get(endpoint);
    if (!destination) throw new Error(`The fake has no destination ${endpoint} of ${server}`);
    destination.connections = connections;
  }

  /** All there is, as text that can be compared: virtual servers with destinations and weights, members of sets, addresses. */
  dump(): Readonly<Record<string, string>> {
    const lines: Record<string, string> = {};
    for (const [key, { server, destinations }] of this.servers) {
      const weights = [...destinations].map(([endpoint, { weight }]) => `${endpoint}=${weight}`).sort();
      const { scheduler, flags, persistenceSeconds, persistenceMask } = server;
      const mask = persistenceMask ? `/${formatIp(ipFromBytes(persistenceMask))}` : '';
      lines[`server ${key}`] = `${scheduler} ${flags} ${persistenceSeconds}${mask} ${weights.join(' ')}`.trim();
    }
    for (const [key, { element }] of this.elements) {
      lines[`member ${key}`] = element.type === 'hash:ip,port' && element.mark ? `mark ${element.mark}` : '';
    }
    for (const text of this.bound.keys()) lines[`address ${text}`] = '';
    return Object.fromEntries(Object.entries(lines).sort(([a], [b]) => (a < b ? -1 : 1)));
  }

  /** Members of one set, as text. */
  members(set: string): string[] {
    return [...this.elements.values()]
      .filter((each) => each.set === set)
      .map(({ element }) => elementText(element))
      .sort();
  }

  #asked(): void {
    if (!this.#isOpen) throw new Error('EBADF: the sockets of this kernel are closed');
  }

  #apply(operation: Operation): Refusal | undefined {
    switch (operation.kind) {
      case 'newServer':
      case 'setServer':
        return this.#applyToServer(operation);
      case 'deleteServer':
        return this.servers.delete(serverKey(operation.key)) ? undefined : 'ESRCH';
      case 'newDestination':
      case 'setDestination':
      case 'deleteDestination':
        return this.#applyToDestination(operation);
      case 'addElement': {
        const member = asListed(operation.element);
        if (!this.prepared) return 'ENOENT';
        if (isOfAnyNetwork(member)) return 'IPSET_ERR_INVALID_CIDR';
        this.elements.set(elementKey(member), member);
        return undefined;
      }
      case 'deleteElement':
        if (!this.prepared) return 'ENOENT';
        if (isOfAnyNetwork(operation.element)) return 'IPSET_ERR_INVALID_CIDR';
        this.elements.delete(elementKey(operation.element));
        return undefined;
      case 'bind': {
        const text = formatIp(operation.ip);
        if (!this.prepared) return 'ENODEV';
        if (this.bound.has(text)) return 'EEXIST';
        this.bound.set(text, operation.ip);
        return undefined;
      }
      case 'unbind':
        if (!this.prepared) return 'ENODEV';
        return this.bound.delete(formatIp(operation.ip)) ? undefined : 'EADDRNOTAVAIL';
      default:
        return operation satisfies never;
    }
  }

  #applyToServer({ kind, virtual }: Extract<Operation, { kind: 'newServer' | 'setServer' }>): Refusal | undefined {
    const key = serverKey(virtual.key);
    const held = this.servers.get(key);
    if (virtual.scheduler.length > LONGEST_SCHEDULER) return 'EINVAL';
    if (kind === 'newServer' && held) return 'EEXIST';
    if (kind === 'setServer' && !held) return 'ESRCH';
    if (!SCHEDULERS.includes(virtual.scheduler)) return 'ENOENT';
    if (held) held.server = virtual;
    else this.servers.set(key, { server: virtual, destinations: new Map() });
    return undefined;
  }

  #applyToDestination({
    kind,
    key,
    destination,
  }: Extract<Operation, { kind: 'newDestination' | 'setDestination' | 'deleteDestination' }>): Refusal | undefined {
    const held = this.servers.get(serverKey(key));
    if (!held) return 'ESRCH';
    const { address, port, weight } = destination;
    const endpoint = formatIpPort(address, port);
    const present = held.destinations.get(endpoint);
    if (kind === 'deleteDestination') return held.destinations.delete(endpoint) ? undefined : 'ENOENT';
    // Masquerading knows no other family behind a virtual server.
    if (address.family !== familyOf(key)) return 'EINVAL';
    if (kind === 'setDestination') {
      if (!present) return 'ENOENT';
      held.destinations.set(endpoint, { address, port, weight, connections: present.connections });
      return undefined;
    }
    if (present) return 'EEXIST';
    if (!isUnicast(address)) return 'EINVAL';
    held.destinations.set(endpoint, { address, port, weight, connections: 0 });
    return undefined;
  }
}

/** Whether IPVS takes it as a destination (ip_vs_new_dest). Of IPv4, what is broadcast depends on the node's routes too. */
function isUnicast(address: IpAddress): boolean {
  const range = specialRange(address);
  if (address.family === 'IPv6') return range === undefined || range === 'loopback';
  return range !== 'multicast' && address.bytes[0] !== 0 && address.bytes.some((byte) => byte !== 255);
}

/** As the kernel lists a member: a network without the bits of hosts. */
function asListed(member: SetElement): SetElement {
  const { set, element } = member;
  if (element.type !== 'hash:ip,port,net') return member;
  return { set, element: { ...element, network: networkOf(element.network, element.prefixLength) } };
}

/** A set of networks takes none of prefix length 0. */
function isOfAnyNetwork({ element }: SetElement): boolean {
  return element.type === 'hash:ip,port,net' && element.prefixLength === 0;
}
