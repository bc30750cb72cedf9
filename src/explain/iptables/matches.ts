import type { Asked, Match, OptionCheck } from './match.ts';
import { CONNECTION_MATCHES } from './match-connection.ts';
import { KERNEL_MATCHES } from './match-kernel.ts';
import type { Extension, Option } from './parse-rule.ts';
import { all, any, hasMark, inAddressRange, inPortRange, negate, type Truth } from './values.ts';

const destinationPorts: OptionCheck = ({ values }, { packet }) => inPortRange(packet.ends.destinationPort, values[0]!);
const sourcePorts: OptionCheck = ({ values }, { packet }) => inPortRange(packet.ends.sourcePort, values[0]!);
const PORTS = { '--dport': destinationPorts, '--sport': sourcePorts };

const inList = (end: 'sourcePort' | 'destinationPort', { values }: Option, { packet }: Asked): Truth =>
  any(values[0]!.split(',').map((range) => inPortRange(packet.ends[end], range)));

const TCP_FLAGS: Readonly<Record<string, number>> = {
  FIN: 1,
  SYN: 2,
  RST: 4,
  PSH: 8,
  ACK: 16,
  URG: 32,
  ALL: 63,
  NONE: 0,
};
const TCP_FLAGS_AT = 13;

const tcpFlags: OptionCheck = ({ values }, { packet }) => {
  const [mask, wanted] = values.map((list) =>
    list.split(',').reduce((sum, flag) => sum | (TCP_FLAGS[flag] ?? Number.NaN), 0),
  );
  const flags = packet.transport.slice(TCP_FLAGS_AT, 1);
  return flags.masked(Uint8Array.of(mask!), Uint8Array.of(0)).equals(Uint8Array.of(wanted!));
};

/** `128`, `3/4`; names, and whatever else stands for a type, are not known here. */
const icmpType: OptionCheck = ({ values: [wanted = ''] }, { packet }) => {
  if (wanted === 'any') return true;
  const numbers = /^(\d+)(?:\/(\d+))?$/.exec(wanted)?.slice(1);
  return (
    numbers &&
    all(numbers.map((one, at) => one === undefined || packet.transport.slice(at, 1).equals(Uint8Array.of(Number(one)))))
  );
};

const HOPS_AT = 7;
/** @param holds what is to be said of the order of the packet's hops and those of the rule */
const hops =
  (holds: (order: number) => boolean): OptionCheck =>
  ({ values }, { packet }) => {
    const order = packet.network.slice(HOPS_AT, 1).compare(Uint8Array.of(Number(values[0])));
    return order === undefined ? undefined : holds(order);
  };

/** pkttype_mt, net/netfilter/xt_pkttype.c: of what the loopback interface brings it says the same. */
const packetType: OptionCheck = ({ values: [wanted = ''] }, { packet }) => {
  const type = { unicast: 0, broadcast: 1, multicast: 2 }[wanted];
  return type === undefined ? undefined : packet.linkType.equals(Uint8Array.of(type));
};

/**
 * Asks something of a header in front of the transport's, which no packet of an ordinary connection has: it does not
 * hold, with `!` neither (rt_mt6, frag_mt6, hbh_mt6, ah_mt6 in net/ipv6/netfilter, ah_mt in net/ipv4/netfilter).
 */
const extensionHeader: Match = () => false;

/** The matches whose effect is known, by their names in rules. */
const MATCHES: Readonly<Record<string, Match>> = {
  comment: { '--comment': () => true },
  tcp: { ...PORTS, '--tcp-flags': tcpFlags },
  udp: PORTS,
  sctp: PORTS,
  multiport: {
    '--dports': (option, asked) => inList('destinationPort', option, asked),
    '--sports': (option, asked) => inList('sourcePort', option, asked),
    '--ports': (option, asked) => any([inList('destinationPort', option, asked), inList('sourcePort', option, asked)]),
  },
  mark: { '--mark': ({ values }, { packet }) => hasMark(packet.mark, values[0]) },
  iprange: {
    '--src-range': ({ values }, { packet }) => inAddressRange(packet.ends.source, values[0]!),
    '--dst-range': ({ values }, { packet }) => inAddressRange(packet.ends.destination, values[0]!),
  },
  icmp: { '--icmp-type': icmpType },
  icmp6: { '--icmpv6-type': icmpType },
  hl: {
    '--hl-eq': hops((order) => order === 0),
    '--hl-lt': hops((order) => order < 0),
    '--hl-gt': hops((order) => order > 0),
  },
  pkttype: { '--pkt-type': packetType },
  rt: extensionHeader,
  frag: extensionHeader,
  hbh: extensionHeader,
  dst: extensionHeader,
  ah: extensionHeader,
  ...CONNECTION_MATCHES,
  ...KERNEL_MATCHES,
};

/** Whether a match holds. It is unknown, never true, when there is something in it that is not known here. */
export function holds({ name, options }: Extension, asked: Omit<Asked, 'options'>): Truth {
  const match = Object.hasOwn(MATCHES, name) ? MATCHES[name] : undefined;
  if (!match) return undefined;
  const withOptions = { ...asked, options };
  if (typeof match === 'function') return match(withOptions);
  return all(
    options.map((option) => {
      const check = Object.hasOwn(match, option.name) ? match[option.name] : undefined;
      return check && negate(check(option, withOptions), option.inverted);
    }),
  );
}
