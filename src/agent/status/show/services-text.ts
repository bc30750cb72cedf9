import { durationText, plainText, withPort } from '../../../core/index.ts';
import { tableLines } from '../../text-table.ts';
import type { PortReport, ServiceReport, Status } from '../status.ts';
import { addressTexts, countText, MARKS, secondsBetween, standingOf, traitTexts, VERDICTS, whyText } from '../words.ts';
import type { PortAffinity } from './affinity/affinity.ts';
import type { PortConnections } from './connections.ts';

const HEAD = ['', 'SERVICE', 'ADDRESS', 'PORTS', 'ENDPOINTS', 'CHANGED', ''] as const;

/** The Services of this node in a table, a line each. Every name is text on the terminal. */
export function servicesText({ services, takenAt }: Status): string {
  const { total, query, matched, page, pages, services: list } = services;
  const rows = list.map((service) => {
    const { name, ports, lastChange } = service;
    const { verdict, text } = standingOf(service);
    const sum = (of: (port: PortReport) => number) => ports.reduce((all, port) => all + of(port), 0);
    return [
      MARKS[verdict],
      name,
      [...new Set(ports.map(({ clusterIp }) => clusterIp))].join(' '),
      [...new Set(ports.map(({ port, protocol }) => `${port}/${protocol}`))].slice(0, 4).join(' '),
      ports.length === 0 ? '' : `${sum((port) => port.endpointsUsed)} of ${sum((port) => port.endpointsTotal)}`,
      lastChange === null ? '' : `${durationText(secondsBetween(lastChange, takenAt))} ago`,
      text,
    ].map(plainText);
  });
  const found =
    query === '' ? countText(total, 'Service') : `${matched} of ${countText(total, 'Service')} fit "${query}"`;
  const pageText = pages > 1 ? `, page ${page} of ${pages} (--page)` : '';
  return linesText([`${found}${pageText}`, ...(rows.length > 0 ? ['', ...tableLines([HEAD, ...rows])] : [])]);
}

/**
 * All about one Service.
 *
 * @param connections a count for each port, or why there is none
 * @param affinity the clients each port remembers, or why they are not known. @default not asked for
 */
export function serviceText(
  service: ServiceReport,
  takenAt: string,
  connections: readonly PortConnections[] | string,
  affinity: readonly (PortAffinity | null)[] | string = [],
): string {
  const { name, ports, problems, lastChange } = service;
  const { verdict, text } = standingOf(service);
  const changed =
    lastChange === null ? 'not since the agent’s start' : `${durationText(secondsBetween(lastChange, takenAt))} ago`;
  return linesText([
    `${MARKS[verdict]} ${name}${text && `: ${text}`}`,
    `  last change: ${changed}`,
    ...problems.map((problem) => `  ${MARKS.problem} ${problem}`),
    ...ports.flatMap((port, index) => [
      '',
      ...portLines(port, typeof connections === 'string' ? undefined : connections[index]),
      ...(typeof affinity === 'string' ? [] : affinityLines(affinity[index])),
    ]),
    ...(typeof affinity === 'string' ? ['', `Who is remembered is not known: ${affinity}`] : []),
    ...(typeof connections === 'string' ? ['', `Connections are not known: ${connections}`] : []),
  ]);
}

function portLines(port: PortReport, connections: PortConnections | undefined): string[] {
  const { portName, protocol, family, leftOut, internalVerdict, externalVerdict } = port;
  const counts = new Map(connections?.endpoints.map((one) => [one.endpoint, one.connections]));
  const rows = port.endpoints.map((endpoint) => {
    const { address, here, used } = endpoint;
    const text = withPort(address, endpoint.port);
    const open = counts.get(text) ?? 0;
    counts.delete(text);
    const opened = connections ? countText(open, 'connection') : '';
    return [`  ${used ? MARKS.ok : MARKS.none}`, text, here ? 'on this node' : '', opened, whyText(endpoint)].map(
      plainText,
    );
  });
  const more = port.endpointsTotal - port.endpoints.length;
  return [
    `${[portName, protocol, family].filter(Boolean).join(', ')}: ${addressTexts(port).join(', ')}`,
    ...(leftOut === null ? [] : [`  ${MARKS.problem} the kernel refuses it: ${leftOut}`]),
    ...(internalVerdict === 'forward' ? [] : [`  at the ClusterIP ${VERDICTS[internalVerdict]}`]),
    ...(externalVerdict === null || externalVerdict === 'forward'
      ? []
      : [`  from outside ${VERDICTS[externalVerdict]}`]),
    ...traitTexts(port).map((trait) => `  ${trait}`),
    `  ${countText(port.endpointsTotal, 'endpoint')}, ${port.endpointsUsed} used${connections ? `; ${connections.isMore ? 'more than ' : ''}${countText(connections.total, 'connection')} now` : ''}`,
    ...tableLines(rows),
    ...(more > 0 ? [`  and ${more} more`] : []),
    // What is open to an endpoint that the Service has no more.
    ...[...counts]
      .slice(0, 10)
      .map(
        ([endpoint, open]) =>
          `  ${MARKS.problem} ${countText(open, 'connection')} to ${endpoint}, which is no endpoint any more`,
      ),
  ];
}

/** Who keeps its endpoint, and for how long. */
function affinityLines(affinity: PortAffinity | null | undefined): string[] {
  if (!affinity) return [];
  const { total, clients } = affinity;
  const rows = clients.map(({ client, endpoint, remainingSeconds }) => {
    const left = remainingSeconds === null ? '' : `for ${durationText(remainingSeconds)} more`;
    return ['   ', client, `-> ${endpoint}`, left].map(plainText);
  });
  const more = total - clients.length;
  return [
    `  ${countText(total, 'client')} remembered`,
    ...tableLines(rows),
    ...(more > 0 ? [`    and ${more} more`] : []),
  ];
}

function linesText(lines: readonly string[]): string {
  return lines.map((line) => `${plainText(line)}\n`).join('');
}
