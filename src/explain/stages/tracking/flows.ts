import { formatIp, formatIpPort, IP_PROTOCOLS, ipEquals, protocolWord, withPort } from '../../../core/index.ts';
import type { IpvsConnection } from '../../../netlink/ipvs/index.ts';
import type { CauseCode, Evidence } from '../../answer/index.ts';
import type { NodeView } from '../../node/index.ts';
import type { Asked, Goal } from '../asked.ts';
import type { Planned } from '../endpoints.ts';
import type { Finding, Report } from '../report.ts';

/**
 * Looks for tracked flows of this client to this destination, which overrule the rules, and for connections of IPVS,
 * which overrule its servers.
 */
export function lookAtFlows(
  asked: Asked,
  planned: Planned | undefined,
  goals: readonly Goal[],
  node: NodeView,
  report: Report,
): void {
  const { target, client } = asked;
  const { ip, port, protocol } = target;
  const flows = node.tracking
    .flowsTo({ protocol: IP_PROTOCOLS[protocol], port, ip })
    // What others follow in a zone of theirs (Open vSwitch), packets without one never meet.
    .filter(({ flow: { original, zone } }) => zone === 0 && ipEquals(original.source, client.ip));
  const endpoints = planned?.endpoints.map((endpoint) => withPort(endpoint.ip, endpoint.port));
  const wanted = new Set(endpoints ?? goals.map(({ address }) => address));
  const gone = endpoints ? 'which is no endpoint any more' : 'where no rule leads them any more';
  const connections = node.tracking
    .ipvsTo({ protocol: IP_PROTOCOLS[protocol], port, ip })
    .filter((one) => ipEquals(one.client, client.ip));
  const followed = new Set(connections.map(({ clientPort }) => clientPort));
  const tellOf = teller(asked, node, report);
  if (planned) lookAtIpvs(asked, connections, wanted, tellOf, node);
  // IPVS takes every packet that comes to it, whatever conntrack says; without a translation of conntrack's it comes with its own source.
  const isMendedByIpvs = goals.length > 0 && goals.every(({ byIpvs, masqueraded }) => byIpvs && masqueraded === false);
  for (const { flow, answered, over } of flows) {
    const { original, reply } = flow;
    const to = formatIpPort(reply.source, reply.sourcePort);
    const from = formatIpPort(original.source, original.sourcePort);
    const evidence = [
      { source: 'conntrack', object: `${from} -> ${formatIpPort(ip, port)}`, value: `answers from ${to}` },
    ];
    // Those that others follow in a zone of theirs stay.
    const forget = `conntrack -D -w 0 -p ${protocolWord(protocol)} -s ${formatIp(original.source)} -d ${formatIp(ip)} --dport ${port}`;
    const tell = (code: CauseCode, text: string, which: string) =>
      tellOf(original.sourcePort, { code, text, remedy: [`${forget} ${which}`] }, evidence);
    const toTheSame = `-r ${formatIp(reply.source)}`;
    // Once both sides have ended it, the next connection from that port begins a flow of its own.
    if (over || wanted.has(to) || followed.has(original.sourcePort)) continue;
    if (ipEquals(reply.source, ip)) {
      if (isMendedByIpvs) continue;
      tell(
        'untranslated',
        `the flow from ${from} was begun before the rules were there and is not translated: it gets nowhere, new ones do`,
        toTheSame,
      );
    } else if (protocol === 'UDP')
      tell('stale-udp', `packets from ${from} go to ${to} as long as they come, ${gone}`, toTheSame);
    else if (!answered) {
      // One that was answered goes on with the endpoint it has, for as long as that serves it.
      tell(
        'recycled-ip',
        `the connection from ${from} is being tried at ${to}, ${gone}: whoever has that address now answers`,
        `--sport ${original.sourcePort}`,
      );
    }
  }
  const seen = flows.filter(({ answered }) => answered).length;
  const text =
    flows.length === 0 ? 'no entry for this client yet' : `${flows.length} entries for this client, ${seen} answered`;
  const { count, max } = node.tracking.room;
  report.stage('conntrack', 'ok', `${text}; ${count} of ${max} in the table`);
}

/** Tells of a flow that goes astray, by the port that the client has for it. */
type TellOf = (from: number, finding: Finding, evidence: readonly Evidence[]) => void;

/** What no socket of the client is in is a warning. */
function teller(asked: Asked, node: NodeView, report: Report): TellOf {
  let isUsed: ((from: number) => boolean) | undefined;
  /** Of each kind one is told: there may be thousands. */
  const unused = new Set<CauseCode>();
  return (from, finding, evidence) => {
    const { code, text } = finding;
    isUsed ??= usedPorts(asked, node);
    if (isUsed(from)) report.failPartly('conntrack', finding, evidence);
    else if (!unused.has(code)) {
      unused.add(code);
      report.warn(code, `${text} (no socket has that port now; the next one that takes it meets the same)`);
    }
  };
}

/** With so many ports to give, the kernel gives the same one again so seldom that it does not count. */
const MANY_PORTS = 1000;

/**
 * From which ports a client sends to the destination, or soon may again; of clients elsewhere nobody here can tell that they do not. Asks
 * the kernel once, whatever number of flows there is.
 */
function usedPorts({ client, target: { protocol, port } }: Asked, node: NodeView): (from: number) => boolean {
  if (client.kind === 'outside' || protocol === 'SCTP') return () => true;
  const netns = client.kind === 'pod' ? client.pod.netns : undefined;
  const sending = node.sendingPorts(protocol, port, netns);
  const { has, count } = node.localPorts(netns);
  const areFew = count(MANY_PORTS) < MANY_PORTS;
  return (from) => sending.has(from) || (areFew && has(from));
}

/** Connections of IPVS to what is no endpoint. TCP connections that were answered go on with the endpoint they have. */
function lookAtIpvs(
  { target }: Asked,
  connections: readonly IpvsConnection[],
  wanted: ReadonlySet<string>,
  tellOf: TellOf,
  node: NodeView,
): void {
  const { ip, port, protocol } = target;
  for (const { client, clientPort, server, serverPort, state } of connections) {
    const to = formatIpPort(server, serverPort);
    if (wanted.has(to) || (protocol !== 'UDP' && !state.startsWith('SYN'))) continue;
    const from = formatIpPort(client, clientPort);
    const evidence = [{ source: 'ipvs', object: `${from} -> ${formatIpPort(ip, port)}`, value: `${to}, ${state}` }];
    const remedy = [
      ...(node.sysctl('net/ipv4/vs/expire_nodest_conn') === '1' ? [] : ['sysctl -w net.ipv4.vs.expire_nodest_conn=1']),
      `ipvsadm -d ${OPTION[protocol]} ${formatIpPort(ip, port)} -r ${to}   # its connections end with it`,
    ];
    const [code, what] =
      protocol === 'UDP'
        ? (['stale-udp', 'go to'] as const)
        : (['recycled-ip', 'of a connection that nobody has answered go to'] as const);
    const text = `packets from ${from} ${what} ${to} as long as they come, which is no endpoint any more: IPVS holds the connection`;
    tellOf(clientPort, { code, text, remedy }, evidence);
  }
}

/** Of ipvsadm(8). */
const OPTION = { TCP: '-t', UDP: '-u', SCTP: '--sctp-service' } as const;
