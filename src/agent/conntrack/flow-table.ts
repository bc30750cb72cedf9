import {
  deleteFlows,
  type Flow,
  type FlowListing,
  listFlows,
  NETLINK_NETFILTER,
  Netlink,
} from '../../netlink/index.ts';

/** The kernel's table of tracked flows. */
export interface FlowTable {
  /** Throws KernelError, ERR_NETLINK_DUMP_INTERRUPTED when it never held still. */
  list(listing: FlowListing): readonly Flow[];
  /** Flows that are gone already count as deleted. Throws KernelError. */
  delete(flows: readonly Flow[]): void;
  close(): void;
}

/** The table of the calling thread's namespace, over a socket of its own. Throws ERR_NETLINK_SOCKET. */
export function openFlowTable(): FlowTable {
  const netlink = Netlink.open(NETLINK_NETFILTER);
  return {
    list: (listing) => listFlows(netlink, listing),
    delete: (flows) => deleteFlows(netlink, flows),
    close: () => netlink.close(),
  };
}
