import { formatIp, formatIpPort, type IpAddress, type IpFamily, KernelError, parseIp } from '../../src/core/index.ts';
import type { ListedDestination, ListedVirtualServer, VirtualServerKey } from '../../src/netlink/ipvs/index.ts';
import {
  elementKey,
  elementText,
  type IpvsKernel,
  type Operation,
  type SetElement,
  serverKey,
} from '../../src/proxy/ipvs/index.ts';

const ERRNO = { ENOENT: 2, ESRCH: 3, EEXIST: 17, EADDRNOTAVAIL: 99 } as const;
const NO_STATISTICS = { connections: 0n, packetsIn: 0n, packetsOut: 0n, bytesIn: 0n, bytesOut: 0n };

/** The schedulers the fake has modules for. */
const SCHEDULERS = ['rr', 'wrr', 'lc', 'sh', 'mh'];

/** A destination with its connections, which a test opens and closes. */
interface FakeDestination {
  address: IpAddress;
  port: number;
  weight: number;
  connections: number;
}

/**
 * A kernel with IPVS, addresses and ipsets in memory, that refuses what the real one refuses: two of a kind, changes of what is
 * not there, schedulers it has no module for, members of sets that were not made. Counts what it is asked.
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
  refuse: (operation: Operation) => keyof typeof ERRNO | undefined = () => undefined;

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
    return this.prepared ? [] : ['ipset KUBE-CLUSTER-IP'];
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
      return name && new KernelError('ERR_NETLINK_ACK', { operation: operation.kind, errno: ERRNO[name] });
    });
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
      const { scheduler, flags, persistenceSeconds } = server;
      lines[`server ${key}`] = `${scheduler} ${flags} ${persistenceSeconds} ${weights.join(' ')}`.trim();
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

  #apply(operation: Operation): keyof typeof ERRNO | undefined {
    switch (operation.kind) {
      case 'newServer': {
        const { virtual } = operation;
        const key = serverKey(virtual.key);
        if (!SCHEDULERS.includes(virtual.scheduler)) return 'ENOENT';
        if (this.servers.has(key)) return 'EEXIST';
        this.servers.set(key, { server: virtual, destinations: new Map() });
        return undefined;
      }
      case 'setServer': {
        const held = this.servers.get(serverKey(operation.virtual.key));
        if (!held) return 'ESRCH';
        if (!SCHEDULERS.includes(operation.virtual.scheduler)) return 'ENOENT';
        held.server = operation.virtual;
        return undefined;
      }
      case 'deleteServer':
        return this.servers.delete(serverKey(operation.key)) ? undefined : 'ESRCH';
      case 'newDestination':
      case 'setDestination':
      case 'deleteDestination':
        return this.#applyToDestination(operation);
      case 'addElement':
        if (!this.prepared) return 'ENOENT';
        this.elements.set(elementKey(operation.element), operation.element);
        return undefined;
      case 'deleteElement':
        if (!this.prepared) return 'ENOENT';
        this.elements.delete(elementKey(operation.element));
        return undefined;
      case 'bind': {
        const text = formatIp(operation.ip);
        if (this.bound.has(text)) return 'EEXIST';
        this.bound.set(text, operation.ip);
        return undefined;
      }
      case 'unbind':
        return this.bound.delete(formatIp(operation.ip)) ? undefined : 'EADDRNOTAVAIL';
      default:
        return operation satisfies never;
    }
  }

  #applyToDestination(
    operation: Extract<Operation, { kind: 'newDestination' | 'setDestination' | 'deleteDestination' }>,
  ): keyof typeof ERRNO | undefined {
    const held = this.servers.get(serverKey(operation.key));
    if (!held) return 'ESRCH';
    const { address, port, weight } = operation.destination;
    const endpoint = formatIpPort(address, port);
    const present = held.destinations.get(endpoint);
    if (operation.kind === 'newDestination') {
      if (present) return 'EEXIST';
      held.destinations.set(endpoint, { address, port, weight, connections: 0 });
      return undefined;
    }
    if (!present) return 'ENOENT';
    if (operation.kind === 'setDestination') present.weight = weight;
    else held.destinations.delete(endpoint);
    return undefined;
  }
}
