import { formatIp, type IpAddress, ipFromBytes } from '../../../core/index.ts';

const ICMP = 1;
const ICMPV6 = 58;

/** By type and code, as `nft` names them. What only tells of a better size or way (fragmentation needed, redirect) ends no flow. */
const ERRORS: Readonly<Record<number, Readonly<Record<number, string>>>> = {
  [ICMP]: {
    768: 'net-unreachable',
    769: 'host-unreachable',
    770: 'prot-unreachable',
    771: 'port-unreachable',
    777: 'net-prohibited',
    778: 'host-prohibited',
    781: 'admin-prohibited',
    2816: 'time-exceeded',
  },
  [ICMPV6]: {
    256: 'no-route',
    257: 'admin-prohibited',
    259: 'addr-unreachable',
    260: 'port-unreachable',
    261: 'policy-fail',
    262: 'reject-route',
    768: 'time-exceeded',
  },
};

/** Somebody's message that a packet will not arrive. */
export interface IcmpError {
  /** Whom it is told. */
  readonly to: IpAddress;
  /** `ICMP port-unreachable from 10.244.1.9` */
  readonly text: string;
}

/** Whether packets are of ICMP, of either family: they have no ports. Pure. */
export function isIcmp(protocol: number): boolean {
  return protocol === ICMP || protocol === ICMPV6;
}

/** Reads the headers of a packet of ICMP as the kernel copied them; undefined when it says anything else. Pure. */
export function readIcmpError(network: Uint8Array, transport: Uint8Array | undefined): IcmpError | undefined {
  const isV6 = (network[0] ?? 0) >> 4 === 6;
  const [source, destination, end, protocol] = isV6 ? [8, 24, 40, ICMPV6] : [12, 16, 20, ICMP];
  if (!transport || transport.length < 2 || network.length < end) return undefined;
  const name = ERRORS[protocol]![(transport[0]! << 8) | transport[1]!];
  if (name === undefined) return undefined;
  const from = formatIp(ipFromBytes(network.slice(source, destination)));
  return { to: ipFromBytes(network.slice(destination, end)), text: `ICMP ${name} from ${from}` };
}
