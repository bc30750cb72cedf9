import { readU32 } from '../../core/index.ts';
import {
  RTN_BLACKHOLE,
  RTN_BROADCAST,
  RTN_LOCAL,
  RTN_PROHIBIT,
  RTN_UNICAST,
  RTN_UNREACHABLE,
} from '../../netlink/uapi/rtnetlink.ts';
import type { Packet } from '../packet/index.ts';
import type { BridgePort } from '../walk/index.ts';
import type { SetKey } from './facts.ts';
import type { Asked, Match, OptionCheck } from './match.ts';
import { all, isInterface, negate, type Truth } from './values.ts';

/** <linux/rtnetlink.h> */
const [RTN_ANYCAST, RTN_MULTICAST] = [4, 5];
const TYPES: Readonly<Record<string, number>> = {
  UNICAST: RTN_UNICAST,
  LOCAL: RTN_LOCAL,
  BROADCAST: RTN_BROADCAST,
  ANYCAST: RTN_ANYCAST,
  MULTICAST: RTN_MULTICAST,
  BLACKHOLE: RTN_BLACKHOLE,
  UNREACHABLE: RTN_UNREACHABLE,
  PROHIBIT: RTN_PROHIBIT,
};

/** addrtype_mt_v1, net/netfilter/xt_addrtype.c. */
const isOfType =
  (which: 'source' | 'destination'): OptionCheck =>
  ({ values }, { packet, host, options }) => {
    const has = (name: string) => options.some((option) => option.name === name);
    const on = has('--limit-iface-in') ? packet.iif : has('--limit-iface-out') ? packet.oif : undefined;
    const wanted = values[0]!.split(',');
    const type = host.addressType(packet.ends[which], on);
    if (type === undefined || wanted.some((name) => !(name in TYPES))) return undefined;
    // Of IPv6 a route is looked up for some types only, and every address that is not of a group is UNICAST.
    if (packet.family === 'IPv6' && wanted.length > 1) return undefined;
    if (packet.family === 'IPv6' && wanted[0] === 'UNICAST') return type !== RTN_MULTICAST;
    return wanted.some((name) => TYPES[name] === type);
  };

const always: OptionCheck = () => true;

/** A rule puts something into a set, or takes it out: the packet and later ones find there what is not known here. */
export function change(set: string, { packet, facts }: Pick<Asked, 'packet' | 'facts'>): void {
  packet.changedSets.add(set);
  if (!packet.flow && !packet.isInvalid) facts.changedSets?.add(set);
}

/** Whether rules have changed a set on the packet's way, or for packets before it. */
function isChanged(set: string, { packet, facts }: Pick<Asked, 'packet' | 'facts'>): boolean {
  const isLater = packet.flow !== undefined || packet.isInvalid;
  const isLeft = packet.changedSets.has(set) || packet.sentBefore?.changedSets.has(set) === true;
  return isLeft || (isLater && facts.changedSets?.has(set) === true);
}

/** Looks a packet up in a set, unless rules have changed that. */
export function findInSet(name: string, directions: string, asked: Pick<Asked, 'packet' | 'facts'>) {
  const { packet, facts } = asked;
  if (isChanged(name, asked)) return undefined;
  return facts.ipsets?.find(name, setKeys(packet, directions), packet.protocol);
}

/** `--match-set NAME src,dst`: what a direction stands for in the key. */
function setKeys(packet: Packet, directions: string): SetKey[] {
  const { source, destination, sourcePort, destinationPort } = packet.ends;
  return directions
    .split(',')
    .map((direction) =>
      direction === 'src' ? { address: source, port: sourcePort } : { address: destination, port: destinationPort },
    );
}

/** Of the kernel's memory of a list; how long ago, or how often, is not known. */
const recent = ({ options, ...asked }: Asked): Truth => {
  const { packet, facts } = asked;
  const option = (name: string) => options.find((option) => option.name === name);
  const name = option('--name')?.values[0] ?? 'DEFAULT';
  const isLeft = !isChanged(listOf(name), asked);
  if (option('--set') || option('--remove')) change(listOf(name), asked);
  // `--set` remembers the address, and holds (recent_mt, net/netfilter/xt_recent.c).
  if (option('--set')) return option('--set')?.inverted !== true;
  const check = option('--rcheck') ?? option('--update');
  const address = option('--rdest') ? packet.ends.destination : packet.ends.source;
  const mask = option('--mask')?.values[0];
  if (!check || !isLeft || (mask !== undefined && !/^(255\.255\.255\.255|ffff(:ffff){7})$/.test(mask)))
    return undefined;
  const found = facts.recent?.(name, address);
  if (found === undefined) return undefined;
  if (found === 'never') return check.inverted;
  return option('--seconds') || option('--hitcount') || option('--rttl') ? undefined : !check.inverted;
};

/** What changes of it is told by, beside sets of ipset, whose names have no blank. */
function listOf(name: string): string {
  return `recent ${name}`;
}

/** physdev_mt, net/netfilter/xt_physdev.c: the ports of a bridge by which frames come in and, if nobody routes them, leave. */
const physdev = ({ options, packet, host }: Asked): Truth => {
  const isOfBridge = packet.iif !== undefined;
  const ports = {
    in: isOfBridge ? host.bridgePort?.(packet, 'in') : 'none',
    out: isOfBridge ? host.bridgePort?.(packet, 'out') : 'none',
  } as const;
  return all(
    options.map(({ name, values, inverted }) => {
      const port = name === '--physdev-in' || name === '--physdev-is-in' ? ports.in : ports.out;
      return negate(ofPort(name, values[0], port), inverted);
    }),
  );
};

function ofPort(option: string, value: string | undefined, port: BridgePort): Truth {
  if (port === undefined || port === 'none') return port === undefined ? undefined : false;
  if (['--physdev-is-in', '--physdev-is-out', '--physdev-is-bridged'].includes(option)) return true;
  return port.name === undefined ? undefined : isInterface(port.name, value ?? '');
}

/** rpfilter_mt, net/ipv4/netfilter/ipt_rpfilter.c: whether the way back leads out where the packet came in. */
const rpfilter = ({ options, packet, host }: Asked): Truth => {
  const has = (name: string) => options.some((option) => option.name === name);
  const known = ['--loose', '--validmark', '--accept-local', '--invert'];
  if (options.some(({ name }) => !known.includes(name))) return undefined;
  // What comes from the loopback interface is let through.
  if (packet.iif === undefined || packet.iif.name === 'lo') return !has('--invert');
  // Without --validmark it asks for the route of a packet without a mark.
  if (!packet.mark.isKnown || (!has('--validmark') && readU32(packet.mark.bytes, 0) !== 0)) return undefined;
  const [type, back] = [host.addressType(packet.ends.source), host.interfaceTo(packet, 'source')];
  if (type === undefined || back === undefined) return undefined;
  const isUsable = type === RTN_UNICAST || (has('--accept-local') && type === RTN_LOCAL);
  const passes = isUsable && back !== 'none' && (has('--loose') || back.index === packet.iif.index);
  return passes !== has('--invert');
};

/**
 * socket_match, net/netfilter/xt_socket.c: a new connection finds none but a socket that listens at its very address. Whether one is
 * transparent is not told.
 */
const socket = ({ options, packet, facts }: Asked): Truth => {
  const asksFor = (name: string) => options.some((option) => option.name === name);
  if (!asksFor('--transparent') || asksFor('--nowildcard')) return undefined;
  const { destination, destinationPort } = packet.ends;
  return facts.isHeardAt?.(packet.protocol, destination, destinationPort) === false ? false : undefined;
};

/** policy_mt, net/netfilter/xt_policy.c: of packets that IPsec has nothing to do with only `--pol none` holds. */
const policy = ({ options, facts }: Asked): Truth => {
  if (!facts.isIpsecIdle?.()) return undefined;
  return options.some(({ name, values }) => name === '--pol' && values[0] === 'none');
};

/** kube-proxy's own counters have no quota; of a counter with one it depends on how much was counted. */
const WITHOUT_QUOTA = ['ct_state_invalid_dropped_pkts', 'localhost_nps_accepted_pkts'];

/** Matches that ask something of the kernel: routes, sets, what it remembers. */
export const KERNEL_MATCHES: Readonly<Record<string, Match>> = {
  addrtype: {
    '--src-type': isOfType('source'),
    '--dst-type': isOfType('destination'),
    '--limit-iface-in': always,
    '--limit-iface-out': always,
  },
  set: {
    '--match-set': ({ values: [name, directions] }, asked) => {
      const found = findInSet(name!, directions!, asked);
      return found === undefined ? undefined : found !== 'not there';
    },
  },
  nfacct: { '--nfacct-name': ({ values }) => (WITHOUT_QUOTA.includes(values[0]!) ? true : undefined) },
  recent,
  physdev,
  policy,
  rpfilter,
  socket,
};
