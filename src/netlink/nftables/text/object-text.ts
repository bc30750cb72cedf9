import { intervalRanges, type KeyRange } from '../object/intervals.ts';
import type { BaseChain, NftElement, NftFamily, NftHook, NftSet, SetFlag } from '../object/model.ts';
import { saysTypeof, typeofText } from '../object/typeof.ts';
import { verdictText } from './rule-text.ts';
import { concatenationText, hexText, rangeText, timeText } from './value-text.ts';

/** What `nft` says of a set or chain, one statement each, as they stand between its braces. */
export type Body = readonly string[];

/** `comment "…"`; none without one. */
export function commentLines(comment: string | undefined): Body {
  return comment === undefined ? [] : [`comment "${comment}"`];
}

/** In the order of `nft`. */
const FLAG_ORDER: readonly SetFlag[] = ['constant', 'dynamic', 'interval', 'timeout'];

/** What a set or map is, without its elements. */
export function setBody({
  key,
  data,
  flags = [],
  size,
  timeoutMs,
  gcIntervalMs,
  comment,
}: Omit<NftSet, 'kind' | 'family' | 'table' | 'name'>): Body {
  const isTypeof = saysTypeof(key, data);
  const typeText = isTypeof ? typeofText : datatypeText;
  const type = typeText(key) + (data === undefined ? '' : ` : ${data === 'verdict' ? data : typeText(data)}`);
  const shown = FLAG_ORDER.filter((flag) => flags.includes(flag));
  return [
    `${isTypeof ? 'typeof' : 'type'} ${type}`,
    ...(size === undefined ? [] : [`size ${size}`]),
    ...(shown.length === 0 ? [] : [`flags ${shown.join(',')}`]),
    ...(timeoutMs === undefined ? [] : [`timeout ${timeText(timeoutMs)}`]),
    ...(gcIntervalMs === undefined ? [] : [`gc-interval ${timeText(gcIntervalMs)}`]),
    ...commentLines(comment),
  ];
}

/** `set` or `map`: `nft` has two words for what the kernel calls a set. */
export function setWord(set: Pick<NftSet, 'data'> | undefined): 'set' | 'map' {
  return set?.data === undefined ? 'set' : 'map';
}

function datatypeText(fields: NftSet['key']): string {
  return fields.join(' . ');
}

/**
 * Elements as `nft` lists them.
 *
 * @param set undefined: its types are not known, keys and values are hexadecimal
 */
export function elementTexts(
  elements: readonly NftElement[],
  set: Pick<NftSet, 'key' | 'data' | 'flags'> | undefined,
): string[] {
  // Ranges of one field are two elements each.
  const isInterval = set?.key.length === 1 && set.flags?.includes('interval');
  if (isInterval) return intervalRanges(elements).map((range) => elementText(range, set, keyRangeText(range, set)));
  return elements.map((element) => {
    const { key, keyEnd, catchAll, intervalEnd } = element;
    const text = catchAll ? '*' : concatenationText(set?.key ?? [], key, keyEnd);
    return elementText(element, set, intervalEnd ? `${text} end` : text);
  });
}

function keyRangeText({ first, last }: KeyRange, { key }: Pick<NftSet, 'key'>): string {
  return rangeText(key[0]!, first, last);
}

function elementText(
  { data, verdict, timeoutMs, expirationMs, comment }: Omit<NftElement, 'key'>,
  set: Pick<NftSet, 'data'> | undefined,
  key: string,
): string {
  const parts = [key];
  if (timeoutMs !== undefined) parts.push(`timeout ${timeText(timeoutMs)}`);
  if (expirationMs !== undefined) parts.push(`expires ${timeText(expirationMs)}`);
  parts.push(...commentLines(comment));
  if (verdict) parts.push(`: ${verdictText(verdict)}`);
  if (data) {
    const types = set?.data;
    parts.push(`: ${types && types !== 'verdict' ? concatenationText(types, data) : hexText(data)}`);
  }
  return parts.join(' ');
}

/** `type nat hook prerouting priority dstnat; policy accept;`: one line of a base chain. */
export function baseText({ type, hook, priority, policy = 'accept' }: BaseChain, family: NftFamily): string {
  return `type ${type} hook ${hook} priority ${priorityText(priority, hook, family)}; policy ${policy};`;
}

/** A name is used for what is at most so far from it (std_prio_lookup of nft's src/rule.c). */
const REACH = 10;

interface NamedPriority {
  readonly name: string;
  readonly priority: number;
  /** Where there is this name. @default everywhere */
  readonly hook?: NftHook;
}

const PRIORITIES: readonly NamedPriority[] = [
  { name: 'raw', priority: -300 },
  { name: 'mangle', priority: -150 },
  { name: 'dstnat', priority: -100, hook: 'prerouting' },
  { name: 'filter', priority: 0 },
  { name: 'security', priority: 50 },
  { name: 'srcnat', priority: 100, hook: 'postrouting' },
];

const BRIDGE_PRIORITIES: readonly NamedPriority[] = [
  { name: 'dstnat', priority: -300, hook: 'prerouting' },
  { name: 'filter', priority: -200 },
  { name: 'out', priority: 100, hook: 'output' },
  { name: 'srcnat', priority: 300, hook: 'postrouting' },
];

/** `dstnat - 10`, `-110` */
export function priorityText(priority: number, hook: NftHook, family: NftFamily): string {
  const named = (family === 'bridge' ? BRIDGE_PRIORITIES : PRIORITIES).find(
    (each) => Math.abs(each.priority - priority) <= REACH && (each.hook === undefined || each.hook === hook),
  );
  if (!named) return String(priority);
  const offset = priority - named.priority;
  return offset === 0 ? named.name : `${named.name} ${offset < 0 ? '-' : '+'} ${Math.abs(offset)}`;
}
