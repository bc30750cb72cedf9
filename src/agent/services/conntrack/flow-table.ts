import { deleteFlows, type Flow, type FlowListing, walkFlows } from '../../../netlink/conntrack/index.ts';
import { Netlink } from '../../../netlink/index.ts';
import { NETLINK_NETFILTER } from '../../../netlink/uapi/index.ts';

/** The kernel's table of tracked flows. */
export interface FlowTable {
  /** Flow by flow. Asking for the first throws KernelError, ERR_NETLINK_DUMP_INTERRUPTED when the table never held still. */
  list(listing: FlowListing): Iterable<Flow>;
  /** Flows that are gone already count as deleted. Throws KernelError. */
  delete(flows: readonly Flow[]): void;
  close(): void;
}

/** The table of the calling thread's namespace, over a socket of its own. Throws ERR_NETLINK_SOCKET. */
export function openFlowTable(): FlowTable {
  const netlink = Netlink.open(NETLINK_NETFILTER);
  return {
    list: (listing) => walkFlows(netlink, listing),
    delete: (flows) => deleteFlows(netlink, flows),
    close: () => netlink.close(),
  };
}
