import { formatIp, formatIpPort, ipFromBytes, readBe16, readU32 } from '../../../core/index.ts';
import type { Branch } from '../../choices.ts';
import type { Walk } from '../../walk/index.ts';
import type { Goal } from '../asked.ts';
import { placeOf } from '../place.ts';
import { translates } from './doing.ts';

/** Where the packet ends up on it; undefined: its address is not known. */
export interface Way extends Branch<Walk> {
  readonly goal: Goal | undefined;
}

/** Whether rules dropped or rejected the packet. */
export function isRefused({ result: { end } }: Branch<Walk>): boolean {
  return end.kind === 'drop' || end.kind === 'reject';
}

/** Where a packet went; undefined: its address is not known. */
export function goalOf({ packet, steps, end, routedBy, routedFrom }: Walk): Goal | undefined {
  const { source, destination, destinationPort } = packet.ends;
  if (!destination.isKnown || !destinationPort.isKnown) return undefined;
  const ip = ipFromBytes(destination.bytes);
  const port = readBe16(destinationPort.bytes, 0);
  const { connection } = packet;
  const tracked = typeof connection === 'object' ? connection : undefined;
  const masqueraded = negate(source.equals((tracked?.original.source ?? source).bytes));
  return {
    address: formatIpPort(ip, port),
    ip,
    port,
    masqueraded,
    translatedBy: steps.findLast(translates),
    source: source.isKnown ? ipFromBytes(source.bytes) : undefined,
    byIpvs: steps.some((step) => step.source === 'ipvs'),
    mark: routedBy.isKnown ? readU32(routedBy.bytes, 0) || undefined : undefined,
    routedFrom: routedFrom.isKnown ? ipFromBytes(routedFrom.bytes) : undefined,
    untracked: connection === 'untracked',
    flowMark: tracked?.mark,
    heardMark: end.kind === 'delivered' ? packet.mark : undefined,
  };
}

/** Of ways that there are whatever is true of what is not known, chance decides; of others nobody can tell whether they are taken. */
export function withDoubts(
  ways: readonly { readonly goal: Goal; readonly unknown: readonly Branch<Walk>['choices'][] }[],
): readonly Goal[] {
  const all = new Set(ways.flatMap(({ unknown }) => unknown.map(textOf)));
  const taken = takenOn(ways.flatMap(({ unknown }) => unknown));
  return ways.map(({ goal, unknown }) => {
    const isAlways = new Set(unknown.map(textOf)).size === all.size;
    return isAlways ? goal : { ...goal, unsure: decider(takenOn(unknown), taken) ?? 'what is not known' };
  });
}

/**
 * What decides, of what is not known, that a way is refused where it is; undefined: nothing of it is not known. Looks
 * through all ways once.
 */
export function deciders(ways: readonly Way[]): (way: Way) => string | undefined {
  const placeIn = ({ result: { steps } }: Way) => placeOf(steps.at(-1)!);
  const taken = takenOn(ways.map(({ choices }) => choices));
  const alike = new Map<string, Branch<Walk>['choices'][]>();
  for (const way of ways.filter(isRefused)) {
    const place = placeIn(way);
    const others = alike.get(place);
    if (others) others.push(way.choices);
    else alike.set(place, [way.choices]);
  }
  const known = new Map([...alike].map(([place, choices]) => [place, decider(takenOn(choices), taken)]));
  const all = new Set(ways.map(unknownIn));
  const refusedAt = new Map<string, Set<string>>();
  for (const way of ways) {
    if (!way.goal || !isRefused(way)) continue;
    const { address } = way.goal;
    refusedAt.set(address, (refusedAt.get(address) ?? new Set()).add(unknownIn(way)));
  }
  // Whatever of it is true, those that chance sends there are refused.
  const isCertain = ({ goal }: Way) => goal !== undefined && refusedAt.get(goal.address)?.size === all.size;
  return (way) =>
    way.choices.every(({ kind }) => kind !== 'unknown') || isCertain(way) ? undefined : known.get(placeIn(way));
}

const unknownIn = ({ choices }: Way): string => textOf(choices.filter(({ kind }) => kind === 'unknown'));
const textOf = (choices: Branch<Walk>['choices']): string =>
  choices.map(({ about, taken }) => `${about} ${taken}`).join();

/** What is taken of what is not known, in the order in which it is met. */
type Taken = ReadonlyMap<string, ReadonlySet<number>>;

function takenOn(ways: readonly Branch<Walk>['choices'][]): Taken {
  const found = new Map<string, Set<number>>();
  for (const { kind, about, taken } of ways.flat()) {
    if (kind !== 'unknown') continue;
    const answers = found.get(about);
    if (answers) answers.add(taken);
    else found.set(about, new Set([taken]));
  }
  return found;
}

/** Of what is not known on some of all ways, what is taken on them otherwise than on the rest; else the first. */
function decider(some: Taken, all: Taken): string | undefined {
  const abouts = [...some.keys()];
  return abouts.find((about) => some.get(about)!.size < all.get(about)!.size) ?? abouts[0];
}

/** The same for ways that end alike, and on which whatever comes later fares alike. */
export function wayText({ address, masqueraded, source, mark, untracked, flowMark, heardMark }: Goal): string {
  return [address, masqueraded, source && formatIp(source), mark, untracked, flowMark?.text, heardMark?.text].join();
}

function negate(value: boolean | undefined): boolean | undefined {
  return value === undefined ? undefined : !value;
}
