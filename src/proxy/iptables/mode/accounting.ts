import { Counter, type Registry } from 'prom-client';
import { ensureAccounting, getAccounting } from '../../../netlink/conntrack/index.ts';
import { withNetlink } from '../../../netlink/index.ts';
import { NETLINK_NETFILTER } from '../../../netlink/uapi/index.ts';
import type { ModeLogger } from '../../index.ts';
import { COUNTERS } from '../fixed-chains.ts';

/**
 * Makes the named counters the rules count into, and shows them as kube-proxy's metrics. They outlive the agent, so that
 * the counts go on over a restart.
 *
 * @returns whether the kernel has such counters; without them the rules do not count and the metrics are not there
 */
export function setUpAccounting(registry: Registry, logger: ModeLogger): boolean {
  try {
    withNetlink(NETLINK_NETFILTER, (netlink) => {
      for (const name of Object.values(COUNTERS)) ensureAccounting(netlink, name);
    });
  } catch (error) {
    logger.info({ err: error }, 'The kernel has no nfacct counters: dropped INVALID packets are not counted');
    return false;
  }
  show(registry, {
    name: 'kubeproxy_iptables_ct_state_invalid_dropped_packets_total',
    help: '[ALPHA] packets dropped by iptables to work around conntrack problems',
    counter: COUNTERS.invalidDropped,
  });
  show(registry, {
    name: 'kubeproxy_iptables_localhost_nodeports_accepted_packets_total',
    help: '[ALPHA] Number of packets accepted on nodeports of loopback interface',
    counter: COUNTERS.loopbackAccepted,
  });
  return true;
}

function show(registry: Registry, metric: { readonly name: string; readonly help: string; readonly counter: string }) {
  const { name, help, counter } = metric;
  new Counter({
    name,
    help,
    registers: [registry],
    collect() {
      this.reset();
      const accounting = withNetlink(NETLINK_NETFILTER, (netlink) => getAccounting(netlink, counter));
      if (accounting) this.inc(Number(accounting.packets));
    },
  });
}
