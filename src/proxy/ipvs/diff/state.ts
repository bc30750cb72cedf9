import { formatIp, type IpAddress } from '../../../core/index.ts';
import type { Destination, ForeignSettings, VirtualServer, VirtualServerKey } from '../../../netlink/ipvs/index.ts';
import { serverKey } from '../compile/server.ts';
import { elementKey, type SetElement } from '../compile/sets.ts';
import type { Operation } from './operations.ts';

/** A destination of ours in the kernel, with what others have set of it. */
export type HeldDestination = Destination & ForeignSettings;

/** Whether nobody else has set anything of it. */
export function isAsWritten({ connectionLimit, forwarding }: HeldDestination): boolean {
  return connectionLimit === undefined && forwarding === undefined;
}

/** A virtual server of ours in the kernel, with its destinations by `ip:port`. */
export interface HeldServer {
  readonly virtual: VirtualServer;
  readonly destinations: ReadonlyMap<string, HeldDestination>;
}

/** What the kernel holds, as far as it is ours; kept up to date as operations succeed. */
export interface KernelState {
  /** By `serverKey`. */
  readonly servers: ReadonlyMap<string, HeldServer>;
  /** Keys of virtual servers that somebody else made. */
  readonly foreign: ReadonlySet<string>;
  /** Members of our sets, by `elementKey`. */
  readonly elements: ReadonlyMap<string, SetElement>;
  /** Addresses of kube-ipvs0, by text. */
  readonly bound: ReadonlyMap<string, IpAddress>;
  /** Addresses of all other interfaces, by text. */
  readonly elsewhere: ReadonlyMap<string, IpAddress>;
}

/** The same, while it is kept up to date. */
export class MutableState implements KernelState {
  readonly servers = new Map<string, { virtual: VirtualServer; destinations: Map<string, HeldDestination> }>();
  readonly foreign = new Set<string>();
  readonly elements = new Map<string, SetElement>();
  readonly bound = new Map<string, IpAddress>();
  readonly elsewhere = new Map<string, IpAddress>();
  /** Of all servers. */
  destinationCount = 0;

  /** Records that an operation has succeeded. */
  record(operation: Operation): void {
    switch (operation.kind) {
      case 'newServer':
        this.servers.set(serverKey(operation.virtual.key), { virtual: operation.virtual, destinations: new Map() });
        return;
      case 'setServer': {
        const held = this.servers.get(serverKey(operation.virtual.key));
        if (held) held.virtual = operation.virtual;
        return;
      }
      case 'deleteServer': {
        const text = serverKey(operation.key);
        this.destinationCount -= this.servers.get(text)?.destinations.size ?? 0;
        this.servers.delete(text);
        return;
      }
      case 'newDestination':
      case 'setDestination':
        this.#setDestination(operation.key, operation.endpoint, operation.destination);
        return;
      case 'deleteDestination':
        this.#setDestination(operation.key, operation.endpoint, undefined);
        return;
      case 'addElement':
        this.elements.set(elementKey(operation.element), operation.element);
        return;
      case 'deleteElement':
        this.elements.delete(elementKey(operation.element));
        return;
      case 'bind':
        this.bound.set(formatIp(operation.ip), operation.ip);
        return;
      case 'unbind':
        this.bound.delete(formatIp(operation.ip));
        return;
      default:
        operation satisfies never;
    }
  }

  /** Records that somebody else removed a destination. */
  forgetDestination(key: VirtualServerKey, endpoint: string): void {
    this.#setDestination(key, endpoint, undefined);
  }

  #setDestination(key: VirtualServerKey, endpoint: string, destination: Destination | undefined): void {
    const destinations = this.servers.get(serverKey(key))?.destinations;
    if (!destinations) return;
    const before = destinations.size;
    if (destination) destinations.set(endpoint, destination);
    else destinations.delete(endpoint);
    this.destinationCount += destinations.size - before;
  }
}
