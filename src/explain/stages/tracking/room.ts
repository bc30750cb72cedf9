import { formatIp } from '../../../core/index.ts';
import type { NodeView, PortUse } from '../../node/index.ts';
import type { Asked, Goal } from '../asked.ts';
import type { Report } from '../report.ts';

/** From here on it is said that room ends. */
const NEARLY = 0.9;
/** With so many that can make room there is always one among the eight or so that the kernel looks at. */
const ALWAYS_SOME = 0.75;
/** Source ports that translation chooses from, for a client whose own is above 1023 (nf_nat_l4proto_unique_tuple, net/netfilter/nf_nat_core.c). */
const PORTS = 65_535 - 1023;
/** The kernel tries 240 ports at random and gives up: with so many taken, one connection in eleven finds none. */
const PORTS_SCARCE = 0.99;

/** How long what is not yet, or is, a connection is remembered; that of later states does not decide whether one begins. */
const TIMEOUTS: Readonly<Record<Asked['target']['protocol'], readonly string[]>> = {
  TCP: ['tcp_timeout_syn_sent', 'tcp_timeout_syn_recv', 'tcp_timeout_established'],
  UDP: ['udp_timeout'],
  SCTP: ['sctp_timeout_cookie_wait', 'sctp_timeout_cookie_echoed', 'sctp_timeout_established'],
};

/** Looks whether connection tracking has room for one more connection, and time, and masquerading a source port for it. */
export function lookAtRoom(asked: Asked, goals: readonly Goal[], node: NodeView, report: Report): void {
  for (const name of TIMEOUTS[asked.target.protocol]) {
    if (node.sysctl(`net/netfilter/nf_conntrack_${name}`)?.trim() !== '0') continue;
    const text = `net.netfilter.nf_conntrack_${name} is 0: flows are forgotten at once, and answers may not be translated`;
    report.cannotTell('conntrack', text);
  }
  const { count, max } = node.tracking.room;
  if (max > 0 && count >= max * NEARLY) lookAtTable(count, max, node, report);
  if (!report.hasFailed && count >= PORTS * NEARLY) lookAtPorts(asked, goals, node, report);
}

/** A full table throws out flows that are not answered for new ones, and where it finds none, drops those (early_drop, nf_conntrack_core.c). */
function lookAtTable(count: number, max: number, node: NodeView, report: Report): void {
  const code = 'conntrack-full';
  if (count < max) {
    report.warn(code, `${count} of ${max} tracked connections: when it is full, new ones are dropped`);
    return;
  }
  const remedy = [`sysctl -w net.netfilter.nf_conntrack_max=${2 * max}`, 'conntrack -S'];
  const { seen, replaceable } = node.tracking.sampleReplaceable();
  const { drop = 0, early_drop: thrownOut = 0 } = node.tracking.counters;
  const evidence = [
    { source: 'conntrack', object: 'dropped for want of room, thrown out', value: `${drop}, ${thrownOut}` },
    { source: 'conntrack', object: 'flows that can make room', value: `${replaceable} of ${seen} that were looked at` },
  ];
  const full = `${count} of ${max} tracked connections`;
  if (replaceable > seen * ALWAYS_SOME) {
    report.warn(code, `${full}: new ones throw out those that nobody answered`);
  } else if (replaceable === 0) {
    const text = `${full}, and none that could make room among ${seen} that were looked at: new ones are dropped`;
    report.fail('conntrack', { code, text, remedy }, evidence);
  } else {
    const text = `${full}: a new one is dropped unless one that nobody answered is near in the table, and is thrown out for it`;
    report.failPartly('conntrack', { code, text, remedy }, evidence);
  }
}

/** Each connection to one endpoint by one address of this node needs a source port of its own. */
function lookAtPorts({ target }: Asked, goals: readonly Goal[], node: NodeView, report: Report): void {
  const { protocol, family } = target;
  const uses = goals.flatMap(
    ({ ip, port, address, masqueraded, source }): (PortUse & { readonly address: string })[] =>
      masqueraded && source ? [{ protocol, to: ip, port, as: source, address }] : [],
  );
  if (uses.length === 0) return;
  const taken = node.tracking.takenPorts(family, uses);
  const { insert_failed: failed = 'not known' } = node.tracking.counters;
  for (const use of uses) {
    const { all, lasting } = taken.get(use)!;
    const text = `${all} of ${PORTS} source ports are taken for connections from ${formatIp(use.as)}, with which they are masqueraded, to ${use.address}`;
    const evidence = [
      {
        source: 'conntrack',
        object: 'insert_failed',
        value: `${failed}`,
      },
    ];
    const list = `conntrack -L -p ${protocol.toLowerCase()} --reply-src ${formatIp(use.to)} --reply-dst ${formatIp(use.as)}`;
    const remedy = [
      `${list}   # who has so many`,
      'More endpoints, or externalTrafficPolicy: Local, which does not masquerade',
    ];
    const finding = { code: 'snat-ports', remedy } as const;
    if (lasting >= PORTS)
      report.failEndpoint('conntrack', use.address, { ...finding, text: `${text}: new ones are dropped` }, evidence);
    else if (all >= PORTS * PORTS_SCARCE)
      report.failPartly(
        'conntrack',
        { ...finding, text: `${text}: some new ones find none and are dropped` },
        evidence,
      );
    else if (all >= PORTS * NEARLY) report.warn('snat-ports', text);
  }
}
