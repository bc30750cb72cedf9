import { IP_PROTOCOLS, type IpFamily, type IpProtocol } from '../../../core/index.ts';
import { cmp, type Expression, lookup, meta, payload, setMarkBits } from '../../../netlink/nftables/index.ts';
import { addressRegisters, isLocalAddress } from '../../../nft/index.ts';
import type { NodePlan } from '../../index.ts';
import type { ChainBody } from './chain.ts';
import { type BalanceKind, SETS, type StickyMaps } from './names.ts';
import { anyOf, commented, dnatByMap, fromPods, loadPort, loadVip, type RuleBody, rule } from './rule.ts';

// The chains that pick an endpoint. They say how many slots there are, the maps say what is in which.

/**
 * One chain of its kind for all Services with so many slots.
 *
 * The number of slots instead of endpoints, because the kernel checks all verdict maps of a table again (1 to 2 ms for
 * 10,000 Services) whenever an element leads to another chain than before.
 */
export function balanceChain(family: IpFamily, node: NodePlan, kind: BalanceKind, slots: number): ChainBody {
  const vip = { load: loadVip(family), registers: addressRegisters(family) + 2 };
  const nodePort = { load: loadPort(), registers: 2 };
  const mark = rule(setMarkBits(node.masqueradeMark));
  switch (kind) {
    case 'endpoints':
      return { rules: pick(family, vip, SETS.endpoints, slots) };
    case 'external':
      return { rules: [mark, ...pick(family, vip, SETS.endpoints, slots)] };
    case 'local':
      return {
        rules: [
          ...shortCircuit(node, [...vip.load, lookup(SETS.shortCircuit, { to: 'verdict' })]),
          ...pick(family, vip, SETS.localEndpoints, slots),
        ],
      };
    case 'nodeport-endpoints':
      return { rules: pick(family, nodePort, SETS.nodePortEndpoints, slots) };
    case 'nodeport':
      return { rules: [mark, ...pick(family, nodePort, SETS.nodePortEndpoints, slots)] };
    case 'nodeport-local':
      return {
        rules: [
          ...shortCircuit(node, [...nodePort.load, lookup(SETS.nodePortShortCircuit, { to: 'verdict' })]),
          ...pick(family, nodePort, SETS.nodePortLocalEndpoints, slots),
        ],
      };
    default:
      return kind satisfies never;
  }
}

/** What tells one destination from another. */
interface Destination {
  readonly load: readonly Expression[];
  /** How many registers that takes. */
  readonly registers: number;
}

/**
 * More than half of the slots are taken (`slotCapacity`). An empty one was drawn: once more, and at last among the first
 * half, which is full. So the choice is even, but for what is left after so many tries: 1 in 64 at most.
 */
const TRIES = 6;

function pick(family: IpFamily, { load, registers }: Destination, map: string, slots: number): RuleBody[] {
  return draws(slots).map((count) => rule(load, anyOf(count, registers), dnatByMap(family, map)));
}

/**
 * Policy Local for who is in the cluster: pods and the node itself may use every endpoint, only traffic from outside has
 * passed a load balancer that chose this node.
 *
 * @param leave takes the packet to all endpoints, if there are any
 */
function shortCircuit(node: NodePlan, leave: readonly Expression[]): RuleBody[] {
  const pods = fromPods(node.localDetector, '==');
  return [...(pods ? [rule(pods, leave)] : []), rule(isLocalAddress('saddr'), setMarkBits(node.masqueradeMark), leave)];
}

/**
 * The chain of a Service port with ClientIP affinity: the client keeps the endpoint it has, or is given one. The map is
 * asked and written in one step; what it says is older than this packet, unless there was nothing.
 *
 * `nft` (to 1.1 at least) aborts on rules that write into a map what they found in another. So the value of `choices` has
 * the protocol before the endpoint: it goes to registers 0 and up, and what is remembered is taken from register 1, where
 * `nft` still sees what was loaded before. It prints the packet's destination and port, which it can read again.
 */
export function stickyChain(family: IpFamily, protocol: IpProtocol, names: StickyMaps, slots: number): ChainBody {
  // Behind the value: protocol, address, port.
  const [portAt, drawn, key] = family === 'IPv4' ? [2, 3, 4] : [5, 7, 8];
  const update = { kind: 'dynset', operation: 'update', set: names.affinity, key, data: 1 } as const;
  const seenByNft = [payload.daddr(family, 1), payload.dport(portAt)];
  const remember = (count: number) =>
    rule(
      [...seenByNft, anyOf(count, drawn), lookup(names.choices, { from: drawn, to: 0 })],
      [payload.saddr(family, key), update],
    );
  // Known here. Said again, since `nft` does not read `dnat to` with a port without it.
  const isProtocol = [meta('l4proto'), cmp.equal(Uint8Array.of(IP_PROTOCOLS[protocol]))];
  const [first, ...again] = draws(slots);
  return {
    rules: [
      commented('a new client gets one of the choices, not what nft shows; a known one gets time', remember(first!)),
      ...again.map(remember),
      rule(isProtocol, payload.saddr(family), dnatByMap(family, names.affinity)),
      commented(
        'no room for more clients',
        rule(isProtocol, anyOf(lastDraw(slots), 0), dnatByMap(family, names.endpoints)),
      ),
    ],
  };
}

/** Among how many slots is drawn, one time after the other, until there is something in the slot. */
function draws(slots: number): number[] {
  if (slots < 2) return slots === 0 ? [] : [1];
  // Two are both taken. But a packet on its way during a commit may find one of them gone.
  if (slots === 2) return [2, 1];
  return [...Array.from({ length: TRIES }, () => slots), lastDraw(slots)];
}

/** Among so many there is always something. */
function lastDraw(slots: number): number {
  return Math.max(1, slots / 2);
}
