import { formatIp, IP_PROTOCOLS, type IpAddress, type IpFamily, type IpProtocol, ipEquals } from '../../core/index.ts';
import {
  type FlowState,
  listFlowStates,
  readTrackingCounters,
  sampleReplaceable,
  type TrackingCounters,
} from '../../netlink/conntrack/index.ts';
import { type Netlink, withNetlink } from '../../netlink/index.ts';
import { type IpvsConnection, listIpvsConnections } from '../../netlink/ipvs/index.ts';
import { NETLINK_NETFILTER } from '../../netlink/uapi/index.ts';
import { readSysctl } from '../../sys/index.ts';

/** Whose source ports are counted: flows to one place, masqueraded with one address. */
export interface PortUse {
  readonly protocol: IpProtocol;
  /** The endpoint. */
  readonly to: IpAddress;
  readonly port: number;
  /** The address they are masqueraded with. */
  readonly as: IpAddress;
}

/** Source ports that are in use. */
export interface TakenPorts {
  readonly all: number;
  /** Without those of connections that have ended and are remembered for a while: newer kernels give them away again. */
  readonly lasting: number;
}

/** Connection tracking of the calling thread's namespace, read whenever something is asked. */
export class Tracking {
  /** Tracked flows, and how many there may be; 0 for no limit, NaN without connection tracking. */
  get room(): { readonly count: number; readonly max: number } {
    const [count, max] = ['count', 'max'].map((name) => numberAt(`net/netfilter/nf_conntrack_${name}`));
    return { count: count!, max: max! };
  }

  /** Tracked flows to a destination. */
  flowsTo(destination: {
    readonly protocol: number;
    readonly port: number;
    readonly ip: IpAddress;
  }): readonly FlowState[] {
    return ask((netlink) => listFlowStates(netlink, { family: destination.ip.family, destination }));
  }

  /** Connections of IPVS to a destination: it follows them, whatever its virtual servers say by now. */
  ipvsTo({
    protocol,
    port,
    ip,
  }: {
    readonly protocol: number;
    readonly port: number;
    readonly ip: IpAddress;
  }): readonly IpvsConnection[] {
    return listIpvsConnections(
      (one) =>
        one.clientPort !== 0 && one.protocol === protocol && one.virtualPort === port && ipEquals(one.virtual, ip),
    );
  }

  /** How many of some flows, of all families, would make room for new ones. */
  sampleReplaceable(): { readonly seen: number; readonly replaceable: number } {
    return ask(sampleReplaceable);
  }

  /** Reads the whole table of the family, once for all uses. */
  takenPorts(family: IpFamily, uses: readonly PortUse[]): ReadonlyMap<PortUse, TakenPorts> {
    const flows = ask((netlink) => listFlowStates(netlink, { family }));
    const taken = new Map<string, { readonly all: Set<number>; readonly lasting: Set<number> }>();
    const keys = new Map(uses.map((use) => [use, keyOf(use)]));
    for (const key of keys.values()) taken.set(key, { all: new Set(), lasting: new Set() });
    const protocols = new Set<number>(uses.map(({ protocol }) => IP_PROTOCOLS[protocol]));
    for (const { flow, over } of flows) {
      const { protocol, reply, zone } = flow;
      // In each zone they are given anew (nf_nat_used_tuple).
      if (!protocols.has(protocol) || zone !== 0) continue;
      const ports = taken.get(
        `${protocol} ${formatIp(reply.source)} ${reply.sourcePort} ${formatIp(reply.destination)}`,
      );
      ports?.all.add(reply.destinationPort);
      if (!over) ports?.lasting.add(reply.destinationPort);
    }
    return new Map(
      [...keys].map(([use, key]) => {
        const { all, lasting } = taken.get(key)!;
        return [use, { all: all.size, lasting: lasting.size }];
      }),
    );
  }

  /** Since the namespace was made; none: the kernel does not say. */
  get counters(): TrackingCounters {
    return readTrackingCounters();
  }
}

function keyOf({ protocol, to, port, as }: PortUse): string {
  return `${IP_PROTOCOLS[protocol]} ${formatIp(to)} ${port} ${formatIp(as)}`;
}

function ask<T>(question: (netlink: Netlink) => T): T {
  return withNetlink(NETLINK_NETFILTER, question);
}

function numberAt(sysctl: string): number {
  try {
    return Number(readSysctl(sysctl));
  } catch {
    return Number.NaN;
  }
}
