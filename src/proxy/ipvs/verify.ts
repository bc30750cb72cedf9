import { type Drift, formatIp, formatIpPort, type IpAddress, ipFromBytes, type Steps } from '../../core/index.ts';
import { sameVirtualServer, serverKey } from './compile/server.ts';
import { elementKey, type SetElement, sameElement } from './compile/sets.ts';
import { type HeldDestination, type HeldServer, isAsWritten, type KernelState } from './diff/state.ts';

/** What was committed, to compare with. */
export interface CommittedState {
  readonly state: KernelState;
  /** The addresses NodePorts were given. */
  readonly nodePortAddresses: readonly IpAddress[];
}

/**
 * Says where the kernel differs from what was committed; rules are another matter (`ruleDrift`).
 *
 * @param found what the kernel holds now
 * @param nodePortAddresses those NodePorts would be given now
 */
export function* findDrift(
  committed: CommittedState,
  found: KernelState,
  nodePortAddresses: readonly IpAddress[],
): Steps<Drift[]> {
  const { state } = committed;
  const drift: Drift[] = [];
  const wanted = byText(committed.nodePortAddresses);
  yield* compare(SERVER, state.servers, found.servers, drift);
  for (const [key, { destinations }] of state.servers) {
    const now = found.servers.get(key)?.destinations;
    if (now) yield* compare({ ...DESTINATION, what: `destination of ${key}` }, destinations, now, drift);
  }
  yield* compare(MEMBER, state.elements, found.elements, drift);
  yield* compare({ ...ADDRESS, what: 'address of kube-ipvs0' }, state.bound, found.bound, drift);
  yield* compare({ ...ADDRESS, what: 'NodePort address' }, wanted, byText(nodePortAddresses), drift);
  return drift;
}

/** How things of a kind are compared, and told. */
interface Comparison<T> {
  readonly what: string;
  /** Of two with one key. */
  readonly same: (a: T, b: T) => boolean;
  readonly textOf: (object: T) => string;
}

const SERVER: Comparison<HeldServer> = {
  what: 'virtual server',
  same: (a, b) => sameVirtualServer(a.virtual, b.virtual),
  textOf: ({ virtual: { key, scheduler, flags, persistenceSeconds, persistenceMask } }) => {
    const mask = persistenceMask && `, by ${formatIp(ipFromBytes(persistenceMask))} of the client's address`;
    return `${serverKey(key)} scheduler ${scheduler}, flags 0x${flags.toString(16)}, persistence ${persistenceSeconds} s${mask ?? ''}`;
  },
};
const DESTINATION: Omit<Comparison<HeldDestination>, 'what'> = {
  same: (a, b) => a.weight === b.weight && isAsWritten(b),
  textOf({ address, port, weight, connectionLimit, forwarding }) {
    const limit = connectionLimit === undefined ? '' : `, at most ${connectionLimit} connections`;
    const way =
      forwarding === undefined ? '' : `, by ${FORWARDING[forwarding] ?? 'another way'} in place of translation`;
    return `${formatIpPort(address, port)} weight ${weight}${limit}${way}`;
  },
};
/** By number, IP_VS_CONN_F_* of <linux/ip_vs.h>. */
const FORWARDING: Readonly<Record<number, string>> = { 1: 'local delivery', 2: 'a tunnel', 3: 'direct routing' };
const MEMBER: Comparison<SetElement> = {
  what: 'ipset member',
  same: sameElement,
  textOf: (member) => {
    const { element } = member;
    const mark = element.type === 'hash:ip,port' ? element.mark : undefined;
    return `${elementKey(member)}${mark === undefined ? '' : ` skbmark 0x${mark.toString(16)}`}`;
  },
};
const ADDRESS: Omit<Comparison<IpAddress>, 'what'> = { same: () => true, textOf: formatIp };

function* compare<T>(
  { what, same, textOf }: Comparison<T>,
  committed: ReadonlyMap<string, T>,
  found: ReadonlyMap<string, T>,
  drift: Drift[],
): Steps<void> {
  const tell = (key: string, difference: Drift['difference'], ours?: T, theirs?: T) => {
    const texts = (object: T | undefined) => (object === undefined ? [] : [textOf(object)]);
    drift.push({ object: `${what} ${key}`, difference, ours: texts(ours), theirs: texts(theirs) });
  };
  for (const [key, value] of committed) {
    yield;
    const now = found.get(key);
    if (now === undefined) tell(key, 'missing', value);
    else if (!same(value, now)) tell(key, 'changed', value, now);
  }
  for (const [key, now] of found) {
    yield;
    if (!committed.has(key)) tell(key, 'unexpected', undefined, now);
  }
}

function byText(addresses: readonly IpAddress[]): ReadonlyMap<string, IpAddress> {
  return new Map(addresses.map((ip) => [formatIp(ip), ip]));
}
