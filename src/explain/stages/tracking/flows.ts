import { formatIp, formatIpPort, IP_PROTOCOLS, ipEquals } from '../../../core/index.ts';
import type { NodeView } from '../../node/index.ts';
import type { Asked } from '../asked.ts';
import { keyOf, type Planned } from '../endpoints.ts';
import type { Report } from '../report.ts';

/** Looks for tracked flows of this client to this destination, which overrule the rules. */
export function lookAtFlows(asked: Asked, planned: Planned | undefined, node: NodeView, report: Report): void {
  const { target, client } = asked;
  const { ip, port, protocol } = target;
  const flows = node.tracking
    .flowsTo({ protocol: IP_PROTOCOLS[protocol], port, ip })
    .filter(({ flow: { original } }) => ipEquals(original.source, client.ip));
  const wanted = new Set(planned?.endpoints.map((endpoint) => keyOf(endpoint.ip, endpoint.port)));
  for (const { flow, answered } of flows) {
    const { original, reply } = flow;
    const to = keyOf(formatIp(reply.source), reply.sourcePort);
    const from = formatIpPort(original.source, original.sourcePort);
    const evidence = [
      { source: 'conntrack', object: `${from} -> ${formatIpPort(ip, port)}`, value: `answers from ${to}` },
    ];
    const remedy = [
      `conntrack -D -p ${protocol.toLowerCase()} -s ${formatIp(original.source)} --sport ${original.sourcePort} -d ${formatIp(ip)} --dport ${port}`,
    ];
    if (!planned || wanted.has(to)) continue;
    if (ipEquals(reply.source, ip)) {
      const text = `the flow from ${from} was begun before the rules were there and is not translated: it hangs, new ones do not`;
      report.failPartly('conntrack', { code: 'untranslated', text, remedy }, evidence);
    } else if (protocol === 'UDP') {
      const text = `packets from ${from} go to ${to} as long as they come, which is no endpoint any more`;
      report.failPartly('conntrack', { code: 'stale-udp', text, remedy }, evidence);
    } else if (!answered) {
      // One that was answered goes on with the endpoint it has, for as long as that serves it.
      const text = `the connection from ${from} is being tried at ${to}, which is no endpoint any more: whoever has that address now answers`;
      report.failPartly('conntrack', { code: 'recycled-ip', text, remedy }, evidence);
    }
  }
  const seen = flows.filter(({ answered }) => answered).length;
  const text =
    flows.length === 0 ? 'no entry for this client yet' : `${flows.length} entries for this client, ${seen} answered`;
  const { count, max } = node.tracking.room;
  report.stage('conntrack', 'ok', `${text}; ${count} of ${max} in the table`);
}
