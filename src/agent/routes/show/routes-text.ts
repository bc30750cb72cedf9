import { plainText } from '../../../core/index.ts';
import { tableLines } from '../../text-table.ts';
import { WAYS } from '../report.ts';
import type { ShownPeer, ShownRoutes } from './shown-routes.ts';

/** Of the pod CIDRs of one node; --json has all. */
const MOST_CIDRS = 4;

const COLUMNS: Readonly<Record<string, (peer: ShownPeer) => string>> = {
  NODE: ({ node }) => node ?? '-',
  MODE: ({ mode }) => mode,
  DEVICE: ({ device }) => device,
  GATEWAY: ({ gateway }) => gateway ?? '-',
  ADDRESS: ({ address }) => address ?? '-',
  'POD CIDRS': ({ podCidrs }) => cidrsText(podCidrs),
  MTU: ({ mtu }) => String(mtu),
  'LAST CHANGE': ({ lastChange }) => timeText(lastChange),
  REACHABLE: ({ reachable, because }) => `${reachable} (${because})`,
};

/**
 * For people: a line that sums up, then a table, and below it what is wrong. Whatever a Node object or a link is called, it is
 * text on the terminal.
 */
export function routesText(routes: ShownRoutes): string {
  const { peers, leftOut, drift, problems } = routes;
  const sections = [
    [summary(routes)],
    peers.length > 0 ? tableLines([Object.keys(COLUMNS), ...peers.map(row)]) : [],
    titled(
      'LEFT OUT',
      leftOut.map(({ node, family, reason }) => `${node} (${family}): ${reason}`),
    ),
    titled('DRIFT', drift),
    titled('PROBLEMS', problems),
  ];
  return sections
    .flatMap((lines, index) => (index > 0 && lines.length > 0 ? ['', ...lines] : lines))
    .map(line)
    .join('');
}

function summary({ agent, peers, leftOut, drift }: ShownRoutes): string {
  const count = (test: (peer: ShownPeer) => boolean) => peers.filter(test).length;
  const parts = [
    `${peers.length} peers`,
    ...Object.keys(WAYS).map((way) => `${count(({ mode }) => mode === way)} ${way}`),
    `${count(({ reachable }) => reachable === 'no')} not reachable`,
    agent ? `${leftOut.length} left out` : 'left out: not known without an agent',
    `${drift.length} drift`,
  ];
  return parts.join(', ');
}

function row(peer: ShownPeer): string[] {
  return Object.values(COLUMNS).map((text) => plainText(text(peer)));
}

function titled(title: string, lines: readonly string[]): string[] {
  return lines.length === 0 ? [] : [title, ...lines.map((text) => `  ${text}`)];
}

function cidrsText(cidrs: readonly string[]): string {
  const rest = cidrs.length - MOST_CIDRS;
  const shown = cidrs.slice(0, MOST_CIDRS).join(',');
  return cidrs.length === 0 ? '-' : rest > 0 ? `${shown} and ${rest} more` : shown;
}

/** Without the milliseconds of RFC 3339. */
function timeText(text: string | null): string {
  return text?.replace(/\.\d+Z$/, 'Z') ?? '-';
}

function line(text: string): string {
  return `${plainText(text)}\n`;
}
