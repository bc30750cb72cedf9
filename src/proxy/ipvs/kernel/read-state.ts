import {
  type Cidr,
  cidrContains,
  formatIp,
  formatIpPort,
  ipProtocolName,
  protocolWord,
  type Steps,
} from '../../../core/index.ts';
import type { VirtualServerKey } from '../../../netlink/ipvs/index.ts';
import { isOwnMark } from '../compile/marks.ts';
import { serverKey } from '../compile/server.ts';
import { elementKey } from '../compile/sets.ts';
import { MutableState } from '../diff/state.ts';
import type { IpvsKernel } from './kernel.ts';

/** What is known of who made what, besides what the kernel's sets say. */
export interface Ownership {
  /** What is in these ranges is not ours unless we made it. */
  readonly excludeCidrs: readonly Cidr[];
  /** Keys of virtual servers this process made. */
  readonly made: ReadonlySet<string>;
}

/**
 * Reads what the kernel holds of ours. A virtual server is ours when
 * - it is in the set KUBE-IPVS-SERVERS, where each is entered before it is made, or this process made it;
 * - it is for one of our marks;
 * - its address is on kube-ipvs0, which is nobody else's, nor in the excluded ranges;
 * - a kube-proxy was here before us (nothing is in KUBE-IPVS-SERVERS) and its sets have it.
 * All others are foreign: they are never touched.
 *
 * A place for a pause comes after each virtual server: each has a listing of its own.
 *
 * @throws KernelError, ERR_NETLINK_DECODE
 */
export function* readState(kernel: IpvsKernel, ownership: Ownership): Steps<MutableState> {
  const state = new MutableState();
  for (const element of kernel.listElements()) state.elements.set(elementKey(element), element);
  const { bound, elsewhere } = kernel.listAddresses();
  for (const ip of elsewhere) state.elsewhere.set(formatIp(ip), ip);
  for (const ip of bound) {
    const excluded = ownership.excludeCidrs.some((cidr) => cidrContains(cidr, ip));
    const text = formatIp(ip);
    if (!excluded || state.elements.has(`KUBE-IPVS-IPS ${text}`)) state.bound.set(text, ip);
  }
  // Nothing is entered where only a kube-proxy was.
  const takeover = ![...state.elements.keys()].some((key) => key.startsWith('KUBE-IPVS-SERVERS '));
  const known = { ...ownership, takeover };
  for (const { statistics: _, ...virtual } of kernel.listServers()) {
    yield;
    const key = serverKey(virtual.key);
    if (!isOurs(key, virtual.key, state, known)) {
      state.foreign.add(key);
      continue;
    }
    const destinations = kernel
      .listDestinations(virtual.key)
      .map(({ address, port, weight, connectionLimit, forwarding }) => {
        return [formatIpPort(address, port), { address, port, weight, connectionLimit, forwarding }] as const;
      });
    state.servers.set(key, { virtual, destinations: new Map(destinations) });
    state.destinationCount += destinations.length;
  }
  return state;
}

function isOurs(
  text: string,
  key: VirtualServerKey,
  { elements, bound, elsewhere }: MutableState,
  { made, excludeCidrs, takeover }: Ownership & { readonly takeover: boolean },
): boolean {
  if (key.kind === 'mark') return isOwnMark(key.mark);
  if (made.has(text)) return true;
  const { address, port } = key;
  const protocol = ipProtocolName(key.protocol);
  if (!protocol) return false;
  const ip = formatIp(address);
  const inSet = (set: string) => elements.has(`${set} ${ip},${protocolWord(protocol)}:${port}`);
  if (inSet('KUBE-IPVS-SERVERS')) return true;
  if (excludeCidrs.some((cidr) => cidrContains(cidr, address))) return false;
  if (bound.has(ip)) return true;
  if (!takeover) return false;
  const isNodePort = elements.has(`KUBE-NODE-PORT-${protocol} ${port}`) || inSet('KUBE-NODE-PORT-SCTP-HASH');
  return VIP_SETS.some(inSet) || (isNodePort && elsewhere.has(ip));
}

/** kube-proxy's sets of addresses that need not be on kube-ipvs0. */
const VIP_SETS = ['KUBE-EXTERNAL-IP', 'KUBE-EXTERNAL-IP-LOCAL', 'KUBE-LOAD-BALANCER'];
