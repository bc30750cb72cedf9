import { formatIp, formatIpPort, ipProtocolName, type Steps } from '../../../core/index.ts';
import type { VirtualServerKey } from '../../../netlink/ipvs/index.ts';
import { boundElement, ledgerElement } from '../compile/compile.ts';
import { type Server, sameVirtualServer } from '../compile/server.ts';
import { elementKey, elementText, type SetElement, type SetName, sameElement } from '../compile/sets.ts';
import type { Draining } from './drain.ts';
import { type Layout, ownerOf, type Touched, type Wanted, type WantedAddress } from './layout.ts';
import type { Operation } from './operations.ts';
import { type HeldDestination, type HeldServer, isAsWritten, type KernelState } from './state.ts';

/** What has to be done, in the order in which no packet meets a half-made state. */
export interface Changes {
  /** In this order: what must be there before traffic comes, virtual servers, what leads traffic to them. */
  readonly steps: readonly (readonly Operation[])[];
  /** Destinations that get nothing new from now on: key of the virtual server and `ip:port`. */
  readonly drained: readonly (readonly [server: string, endpoint: string])[];
  /** Destinations that need not be drained any more: wanted again, or gone. */
  readonly revived: readonly (readonly [server: string, endpoint: string])[];
  /** Whether nobody wants a virtual server any more; it stays until it has been drained. */
  readonly retired: ReadonlyMap<string, boolean>;
  /** Service ports that want a virtual server somebody else has, by key. */
  readonly conflicts: ReadonlyMap<string, string>;
}

export const NO_CHANGES: Changes = { steps: [], drained: [], revived: [], retired: new Map(), conflicts: new Map() };

/** Sets whose members turn traffic away from where it went before: they come after the virtual servers. */
const STEERING: ReadonlySet<SetName> = new Set<SetName>([
  'KUBE-REJECT',
  'KUBE-DROP',
  'KUBE-DROP-OUTSIDE',
  'KUBE-IPVS-MARK',
]);

/** Everything there is or should be: for a full sync. */
export function everything(layout: Layout, state: KernelState): Touched {
  return {
    servers: new Set([...layout.servers.keys(), ...state.servers.keys()]),
    elements: new Set([...layout.elements.keys(), ...state.elements.keys()]),
    addresses: new Set([...layout.addresses.keys(), ...state.bound.keys()]),
  };
}

/**
 * What is to be done about what was touched, to come from what the kernel holds to the layout. Pure.
 *
 * @param draining what is being drained already
 */
export function* planChanges(layout: Layout, state: KernelState, draining: Draining, touched: Touched): Steps<Changes> {
  const plan = new Planning(layout, state, draining);
  for (const key of touched.servers) {
    plan.server(key);
    yield;
  }
  for (const text of touched.addresses) {
    plan.address(text);
    yield;
  }
  for (const key of touched.elements) {
    plan.element(key);
    yield;
  }
  return plan.changes();
}

class Planning {
  readonly #layout: Layout;
  readonly #state: KernelState;
  readonly #draining: Draining;
  readonly #prepare: Operation[] = [];
  readonly #serve: Operation[] = [];
  readonly #steer: Operation[] = [];
  readonly #bind: Operation[] = [];
  readonly #retire: Operation[] = [];
  readonly #unbind: Operation[] = [];
  readonly #forget: Operation[] = [];
  readonly #drained: [string, string][] = [];
  readonly #revived: [string, string][] = [];
  readonly #retired = new Map<string, boolean>();
  readonly #conflicts = new Map<string, string>();
  /** Addresses of virtual servers that begin to be drained now, and of those that were before. */
  readonly #justRetired = new Set<string>();
  #lingering: ReadonlySet<string> | undefined;

  constructor(layout: Layout, state: KernelState, draining: Draining) {
    this.#layout = layout;
    this.#state = state;
    this.#draining = draining;
  }

  changes(): Changes {
    return {
      steps: [this.#prepare, this.#serve, this.#steer, this.#bind, this.#retire, this.#unbind, this.#forget].filter(
        ({ length }) => length > 0,
      ),
      drained: this.#drained,
      revived: this.#revived,
      retired: this.#retired,
      conflicts: this.#conflicts,
    };
  }

  server(key: string): void {
    const wanted = this.#layout.servers.get(key);
    const held = this.#state.servers.get(key);
    if (wanted && !held && this.#state.foreign.has(key)) {
      this.#conflicts.set(wanted.owner, `a virtual server ${key} is there that nodeplane did not make`);
    } else if (wanted) this.#keep(key, wanted, held);
    else if (held) this.#retireServer(key, held);
    else {
      const entry = this.#state.elements.get(ledgerKey(key));
      if (entry) this.#drop(entry);
    }
  }

  address(text: string): void {
    const wanted = this.#layout.addresses.get(text);
    const bound = this.#state.bound.get(text);
    if (wanted && this.#belongsToDevice(text, wanted.value)) {
      const owners = ownersOf(wanted);
      if (!bound) this.#bind.push({ kind: 'bind', ip: wanted.value.ip, owners });
      this.#add(boundElement(wanted.value.ip), owners);
    } else if (bound && !this.#lingers(text)) {
      this.#unbind.push({ kind: 'unbind', ip: bound, owners: [] });
      this.#drop(boundElement(bound));
    }
  }

  element(key: string): void {
    const wanted = this.#layout.elements.get(key);
    if (wanted) {
      this.#add(wanted.value, ownersOf(wanted));
      return;
    }
    const held = this.#state.elements.get(key);
    if (held && !this.#isFollowed(held)) this.#drop(held);
  }

  /** Whether a member is of a set that follows virtual servers or addresses, those that are being drained included. */
  #isFollowed({ set, element }: SetElement): boolean {
    if (set === 'KUBE-IPVS-IPS') {
      const text = elementText(element);
      const wanted = this.#layout.addresses.get(text);
      return this.#state.bound.has(text) || (wanted !== undefined && this.#belongsToDevice(text, wanted.value));
    }
    if (set !== 'KUBE-IPVS-SERVERS' || element.type !== 'hash:ip,port') return false;
    const key = `${formatIpPort(element.address, element.port)}/${element.protocol}`;
    return this.#state.servers.has(key) || this.#layout.servers.has(key);
  }

  #keep(key: string, wanted: Server, held: HeldServer | undefined): void {
    const { virtual } = wanted;
    const owners = [wanted.owner];
    const ledger = ledgerElement(wanted);
    if (ledger) this.#add(ledger, owners);
    if (!held) this.#serve.push({ kind: 'newServer', virtual, owners });
    else if (!sameVirtualServer(virtual, held.virtual)) this.#serve.push({ kind: 'setServer', virtual, owners });
    if (this.#draining.servers.get(key)?.retired) this.#retired.set(key, false);

    for (const [endpoint, { address, port }] of wanted.endpoints) {
      const present = held?.destinations.get(endpoint);
      if (present?.weight === 1 && isAsWritten(present)) continue;
      const kind = present ? 'setDestination' : 'newDestination';
      const destination = { address, port, weight: 1 };
      this.#serve.push({ kind, key: virtual.key, endpoint, destination, owners });
      if (present) this.#revived.push([key, endpoint]);
    }
    for (const [endpoint, destination] of held?.destinations ?? []) {
      if (wanted.endpoints.has(endpoint)) continue;
      if (wanted.protocol === 'UDP') {
        this.#retire.push({ kind: 'deleteDestination', key: virtual.key, endpoint, destination, owners: [] });
        this.#revived.push([key, endpoint]);
      } else this.#drain(key, virtual.key, endpoint, destination);
    }
  }

  /** Nobody wants it: it goes at once if it has no connections that would notice. */
  #retireServer(key: string, held: HeldServer): void {
    const { virtual, destinations } = held;
    const isUdp = virtual.key.kind === 'address' && ipProtocolName(virtual.key.protocol) === 'UDP';
    if (isUdp || destinations.size === 0) {
      this.#retire.push({ kind: 'deleteServer', key: virtual.key, owners: [] });
      const protocol = virtual.key.kind === 'address' ? ipProtocolName(virtual.key.protocol) : undefined;
      const ledger = protocol && ledgerElement({ virtual, protocol });
      if (ledger) this.#drop(ledger);
      return;
    }
    this.#retired.set(key, true);
    if (virtual.key.kind === 'address') this.#justRetired.add(formatIp(virtual.key.address));
    for (const [endpoint, destination] of destinations) this.#drain(key, virtual.key, endpoint, destination);
  }

  #drain(server: string, key: VirtualServerKey, endpoint: string, destination: HeldDestination): void {
    if (destination.weight !== 0 || !isAsWritten(destination)) {
      const { address, port } = destination;
      const emptied = { address, port, weight: 0 };
      this.#retire.push({ kind: 'setDestination', key, endpoint, destination: emptied, owners: [] });
    }
    this.#drained.push([server, endpoint]);
  }

  /** An address another interface has needs no second home. */
  #belongsToDevice(text: string, { binding }: WantedAddress): boolean {
    if (binding === 'never') return false;
    return binding === 'always' || !this.#state.elsewhere.has(text);
  }

  /** Whether a virtual server that nobody wants any more still has connections at this address. */
  #lingers(text: string): boolean {
    this.#lingering ??= lingeringAddresses(this.#state, this.#draining);
    return this.#lingering.has(text) || this.#justRetired.has(text);
  }

  #add(element: SetElement, owners: readonly string[]): void {
    const held = this.#state.elements.get(elementKey(element));
    if (held && sameElement(held, element)) return;
    (STEERING.has(element.set) ? this.#steer : this.#prepare).push({ kind: 'addElement', element, owners });
  }

  #drop(element: SetElement): void {
    if (!this.#state.elements.has(elementKey(element))) return;
    this.#forget.push({ kind: 'deleteElement', element, owners: [] });
  }
}

/** Of the element that says that a virtual server is ours, given its key. */
function ledgerKey(key: string): string {
  const [, address, port, protocol = ''] = /^\[?(.+?)\]?:(\d+)\/(\w+)$/.exec(key) ?? [];
  return `KUBE-IPVS-SERVERS ${address},${protocol.toLowerCase()}:${port}`;
}

/** Those with destinations left: one without goes with this very change. */
function lingeringAddresses(state: KernelState, draining: Draining): ReadonlySet<string> {
  const addresses = new Set<string>();
  for (const [text, { key, retired }] of draining.servers) {
    const left = state.servers.get(text)?.destinations.size ?? 0;
    if (retired && left > 0 && key.kind === 'address') addresses.add(formatIp(key.address));
  }
  return addresses;
}

function ownersOf({ owners }: Wanted<unknown>): string[] {
  return [...new Set([...owners].map(ownerOf))];
}
