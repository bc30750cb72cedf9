import { formatIp, protocolWord } from '../../../core/index.ts';
import type { NodeView, PortUse } from '../../node/index.ts';
import type { Asked, Goal, Target } from '../asked.ts';
import { editing } from '../commands.ts';
import type { Report } from '../report.ts';
import { isTracked } from './tracked.ts';

/** From here on it is said that room ends. */
const NEARLY = 0.9;
/**
 * The kernel looks for flows that can make room in so many rows of the table (NF_CT_EVICTION_RANGE,
 * net/netfilter/nf_conntrack_core.c), and each flow stands in two.
 */
const LOOKED_AT = 8 * 2;
/** With so many of them on an average there is always one; with so few, never. */
const [ALWAYS_SOME, HARDLY_EVER] = [12, 0.01];
/**
 * Source ports that translation chooses from, for a client whose own is above 1023 (nf_nat_l4proto_unique_tuple,
 * net/netfilter/nf_nat_core.c).
 */
const PORTS = 65_535 - 1023;
/** The kernel tries 240 ports at random and gives up: with so many taken, one connection in eleven finds none. */
const PORTS_SCARCE = 0.99;

/** How long what is not yet, or is, a connection is remembered, answered or not; that of its end does not decide whether one begins. */
const TIMEOUTS: Readonly<Record<Asked['target']['protocol'], readonly string[]>> = {
  TCP: 'syn_sent syn_recv established unacknowledged max_retrans'.split(' ').map((state) => `tcp_timeout_${state}`),
  UDP: ['udp_timeout'],
  SCTP: ['sctp_timeout_cookie_wait', 'sctp_timeout_cookie_echoed', 'sctp_timeout_established'],
};

/** Looks whether connection tracking has room for one more connection, and time, and masquerading a source port for it. */
export function lookAtRoom(asked: Asked, goals: readonly Goal[], node: NodeView, report: Report): void {
  if (goals.length > 0 && !goals.some((goal) => isTracked(asked, goal, node))) return;
  for (const name of TIMEOUTS[asked.target.protocol]) {
    if (node.sysctl(`net/netfilter/nf_conntrack_${name}`)?.trim() !== '0') continue;
    const text = `net.netfilter.nf_conntrack_${name} is 0: flows are forgotten at once, and answers may not be translated`;
    report.cannotTell('conntrack', text);
  }
  const { count, max } = node.tracking.room;
  if (max > 0 && count >= max * NEARLY) lookAtTable(count, max, node, report);
  if (!report.hasFailed && count >= PORTS * NEARLY) lookAtPorts(asked, goals, node, report);
}

/**
 * A full table throws out flows that are not answered for new ones, and where it finds none, drops those (early_drop,
 * nf_conntrack_core.c).
 */
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
  // All namespaces share the rows, which may be many more than the flows that this one may have.
  const rows = Number(node.sysctl('net/netfilter/nf_conntrack_buckets') ?? count);
  const met = ((replaceable / Math.max(1, seen)) * count * LOOKED_AT) / rows;
  if (met > ALWAYS_SOME) {
    report.warn(code, `${full}: new ones throw out those that nobody answered`);
  } else if (met < HARDLY_EVER) {
    const none = `${replaceable || 'none'} that could make room among ${seen} that were looked at`;
    const why = replaceable === 0 ? '' : `, hardly ever near enough in a table of ${rows} rows`;
    const text = `${full}, and ${none}${why}: new ones are dropped`;
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
    const list = `conntrack -L -p ${protocolWord(protocol)} --reply-src ${formatIp(use.to)} --reply-dst ${formatIp(use.as)}`;
    const remedy = [`${list}   # who has so many`, ...lessMasqueraded(target)];
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

function lessMasqueraded({ service }: Target): readonly string[] {
  if (!service || service.via === 'cluster-ip') return [];
  return [
    editing(service.service.name, 'spec.externalTrafficPolicy: Local, which does not masquerade; or more endpoints'),
  ];
}
