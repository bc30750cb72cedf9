import { durationText, formatIp, formatIpPort, type IpAddress, parseIp } from '../../core/index.ts';
import type { Answer, SeenBefore } from '../answer/index.ts';
import type { Knowledge, SeenByAgent, SeenFlow } from '../knowledge/index.ts';
import { isOwnTable } from '../nft/index.ts';
import type { Target } from './asked.ts';
import { isChainOfProxies } from './place.ts';

/** What was longer ago is of another trouble; rules of others stay what they were changed to. */
const LATELY_SECONDS = 900;
const MOST_CHANGES = 2;
const MOST_ENDPOINTS = 3;

/**
 * What the agent saw that belongs to an answer: flows like this one that nobody answered, and who changed the rules that decide it.
 *
 * @param from who connects; undefined: any pod does
 */
export function seenBefore(
  { seen }: Knowledge,
  target: Target,
  from: IpAddress | undefined,
  answer: Answer,
): readonly SeenBefore[] {
  if (!seen) return [];
  const missed = seen.gaps.map((text) => ({ kind: 'missed', text, secondsAgo: null }) as const);
  return [...unanswered(seen.unanswered, target, from), ...changesOfRules(seen, answer), ...missed];
}

function unanswered(flows: readonly SeenFlow[], { ip, port, protocol }: Target, from: IpAddress | undefined) {
  const [asked, client] = [formatIp(ip), from && formatIp(from)];
  const alike = flows.filter(
    (flow) =>
      flow.secondsAgo < LATELY_SECONDS &&
      flow.protocol === protocol &&
      (client === undefined || flow.source === client) &&
      ((flow.destination === asked && flow.port === port) ||
        (flow.endpoint?.address === asked && flow.endpoint.port === port)),
  );
  const last = alike.at(-1);
  if (!last) return [];
  const { secondsAgo } = last;
  const count = alike.length === 1 ? 'a connection like this was' : `${alike.length} connections like this were`;
  const text = `${count} given up without an answer, ${durationText(secondsAgo)} ago${byEndpoint(alike)}`;
  return [{ kind: 'unanswered', text, secondsAgo } as const];
}

/** `: 12 to 10.244.1.9:8080, 1 to …`; empty where none was translated. */
function byEndpoint(flows: readonly SeenFlow[]): string {
  const counts = new Map<string, number>();
  for (const { endpoint } of flows) {
    if (!endpoint) continue;
    const to = formatIpPort(parseIp(endpoint.address), endpoint.port);
    counts.set(to, (counts.get(to) ?? 0) + 1);
  }
  const most = [...counts].sort(([, a], [, b]) => b - a).slice(0, MOST_ENDPOINTS);
  return most.length === 0 ? '' : `: ${most.map(([to, count]) => `${count} to ${to}`).join(', ')}`;
}

/** The newest first: of tables whose rules decide, and lately of what this program writes, which it has put back since where all works. */
function changesOfRules({ changes }: SeenByAgent, { verdict, path }: Answer): readonly SeenBefore[] {
  const deciding = path
    .filter(({ result }) => result === 'fail' || result === 'unknown')
    .flatMap(({ evidence }) => evidence)
    .filter(({ source }) => source === 'nftables');
  const decides = (table: string) =>
    verdict !== 'works' && deciding.some(({ object }) => object.startsWith(`${table} `));
  return changes
    .filter(({ places, secondsAgo }) =>
      places.some(({ table, name }) => decides(table) || (secondsAgo < LATELY_SECONDS && isOurs(table, name))),
    )
    .slice(-MOST_CHANGES)
    .reverse()
    .map(({ by, what, secondsAgo }) => ({
      kind: 'rules',
      text: `${by} ${what}, ${durationText(secondsAgo)} ago`,
      secondsAgo,
    }));
}

const isOurs = (table: string, name: string | null) =>
  isOwnTable(table.slice(table.indexOf(' ') + 1)) || (name !== null && isChainOfProxies(name));
