import { readMessages } from '../../message.ts';
import { openSocket, type SocketOptions } from '../../socket.ts';
import { NETLINK_NETFILTER } from '../../uapi/netlink.ts';
import { NFNL_SUBSYS_NFTABLES } from '../../uapi/nf-tables.ts';
import * as uapi from '../../uapi/nf-tables-trace.ts';
import { nfgenmsg, nfnlType } from '../../uapi/nfnetlink.ts';
import { type SocketWatch, watchSocket } from '../../watch/index.ts';
import { readOptional64 } from '../expression/integers.ts';
import { FAMILIES, VERDICTS } from '../names.ts';
import type { NftFamily } from '../object/model.ts';

/** A rule that a traced packet matched, or the policy of a chain it came to the end of. */
export interface TraceEvent {
  /** The same for all events of a packet, until it leaves the namespace. */
  readonly id: number;
  /** Of the packet. */
  readonly family: NftFamily;
  /** Of the table: `inet` for packets of both families. */
  readonly tableFamily: NftFamily;
  readonly table: string;
  readonly chain: string;
  /** `return`: at the end of a chain that is no base chain. */
  readonly type: 'policy' | 'return' | 'rule';
  /** Missing for policies, and at the end of a chain. */
  readonly handle: number | undefined;
  /** `accept`, `jump CHAIN`, …; of a policy, the policy. Undefined for verdicts the model has no name for (queue, stolen). */
  readonly verdict: string | undefined;
  /** As far as the kernel copied them: of the first event in each base chain. */
  readonly networkHeader: Uint8Array | undefined;
  readonly transportHeader: Uint8Array | undefined;
  readonly iif: number | undefined;
  readonly oif: number | undefined;
  readonly mark: number;
  /**
   * Of the connection, as conntrack's own messages number it; undefined before conntrack has seen the packet, and on kernels that
   * do not tell it (6.1 does not, 6.18 does).
   */
  readonly connection: { readonly id: number; readonly direction: 'original' | 'reply' } | undefined;
}

const TYPES: Readonly<Record<number, TraceEvent['type']>> = {
  [uapi.NFT_TRACETYPE_POLICY]: 'policy',
  [uapi.NFT_TRACETYPE_RETURN]: 'return',
  [uapi.NFT_TRACETYPE_RULE]: 'rule',
};

/**
 * Tells what packets with the trace flag (`meta nftrace set 1`) meet in nf_tables of the calling thread's namespace
 * (`inNetns` for another), until `close`. Rules that do not match are not told; neither are legacy iptables and IPVS.
 *
 * @param listener 'lost' when events came faster than they were read
 * @throws ERR_NETLINK_SOCKET
 */
export function watchTraces(
  listener: (event: TraceEvent | 'lost') => void,
  options: Pick<SocketOptions, 'bufferBytes'> = {},
): SocketWatch {
  const socket = openSocket(NETLINK_NETFILTER, { ...options, groups: [uapi.NFNLGRP_NFTRACE] });
  return watchSocket(socket, (datagram) => {
    if (datagram === 'lost') listener('lost');
    else for (const event of decodeTraces(datagram)) listener(event);
  });
}

/** The events in a datagram of the multicast group. Throws ERR_NETLINK_DECODE. */
function decodeTraces(datagram: Uint8Array): TraceEvent[] {
  return [...readMessages(datagram)]
    .filter(({ type }) => type === nfnlType(NFNL_SUBSYS_NFTABLES, uapi.NFT_MSG_TRACE))
    .flatMap(({ payload }) => decodeTrace(payload) ?? []);
}

function decodeTrace(payload: Uint8Array): TraceEvent | undefined {
  const a = uapi.NFTA_TRACE.decode(payload, nfgenmsg.size);
  const family = FAMILIES.name(a.NFTA_TRACE_NFPROTO ?? 0);
  const type = TYPES[a.NFTA_TRACE_TYPE ?? 0];
  // Families the model has no place for: arp, netdev.
  if (!family || !type) return undefined;
  const code = type === 'policy' ? a.NFTA_TRACE_POLICY : a.NFTA_TRACE_VERDICT?.NFTA_VERDICT_CODE;
  const name = code === undefined ? undefined : VERDICTS.name(code | 0);
  const chain = a.NFTA_TRACE_VERDICT?.NFTA_VERDICT_CHAIN;
  const handle = readOptional64(a.NFTA_TRACE_RULE_HANDLE, 'NFTA_TRACE_RULE_HANDLE');
  return {
    id: a.NFTA_TRACE_ID ?? 0,
    family,
    tableFamily: FAMILIES.name(nfgenmsg.decode(payload).nfgen_family) ?? family,
    table: a.NFTA_TRACE_TABLE ?? '',
    chain: a.NFTA_TRACE_CHAIN ?? '',
    type,
    handle,
    verdict: name && chain !== undefined ? `${name} ${chain}` : name,
    networkHeader: a.NFTA_TRACE_NETWORK_HEADER,
    transportHeader: a.NFTA_TRACE_TRANSPORT_HEADER,
    iif: a.NFTA_TRACE_IIF,
    oif: a.NFTA_TRACE_OIF,
    mark: a.NFTA_TRACE_MARK ?? 0,
    connection:
      a.NFTA_TRACE_CT_ID === undefined
        ? undefined
        : { id: a.NFTA_TRACE_CT_ID, direction: a.NFTA_TRACE_CT_DIRECTION === 1 ? 'reply' : 'original' },
  };
}
