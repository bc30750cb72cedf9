import { parseJson } from '../../core/index.ts';
import type { FoundOnNode } from './found.ts';

/** How far a node has come: others' rules or devices are still here, all is ours, or the work is with others again. */
export type Step = 'taking-over' | 'taken-over' | 'gone-back';

const STEPS: ReadonlySet<unknown> = new Set<Step>(['taking-over', 'taken-over', 'gone-back']);

/** What annotation nodeplane.io/migration of a Node says, as JSON with these fields. */
export interface MigrationNote {
  /** What the node ran before, such as `kube-proxy iptables`. */
  readonly from: readonly string[];
  readonly step: Step;
  /** When the step began, RFC 3339 in UTC. */
  readonly since: string;
}

/** Somebody may have written the annotation by hand. */
const MOST_SOURCES = 8;
const LONGEST_NAME = 40;

/**
 * The note of a node on which this was found, after the note before: what it came from is remembered beyond the moment it is gone,
 * and what was complete begins anew when others are back.
 *
 * @param now milliseconds since 1970
 * @returns undefined: nothing of others is here nor was
 */
export function nextNote(
  before: MigrationNote | undefined,
  { theirs }: FoundOnNode,
  now: number,
): MigrationNote | undefined {
  const names = theirs.map(({ name }) => name);
  if (names.length === 0 && !before) return undefined;
  const goesOn = before && (before.step === 'taking-over' || names.length === 0);
  const from = [...new Set(goesOn ? [...before.from, ...names] : names)].slice(0, MOST_SOURCES);
  const step: Step = names.length > 0 ? 'taking-over' : 'taken-over';
  const isSame = before?.step === step && from.join() === before.from.join();
  return { from, step, since: isSame ? before.since : timeText(now) };
}

/**
 * The note of a node whose Services are with a kube-proxy again and nothing of ours is left.
 *
 * @param now milliseconds since 1970
 */
export function backNote({ from, step, since }: MigrationNote, now: number): MigrationNote {
  return { from, step: 'gone-back', since: step === 'gone-back' ? since : timeText(now) };
}

const timeText = (ms: number) => new Date(ms).toISOString().replace(/\.\d+Z$/, 'Z');

/** As the annotation has it. */
export function noteText(note: MigrationNote): string {
  return JSON.stringify(note);
}

/** Undefined: there is none, or it is nonsense, which is the same. */
export function readNote(text: string | undefined): MigrationNote | undefined {
  if (text === undefined) return undefined;
  let value: Partial<Record<keyof MigrationNote, unknown>> | null;
  try {
    value = parseJson(text) as typeof value;
  } catch {
    return undefined;
  }
  const { from, step, since } = value ?? {};
  const isName = (name: unknown): name is string => typeof name === 'string' && name.length <= LONGEST_NAME;
  if (!Array.isArray(from) || from.length > MOST_SOURCES || !from.every(isName)) return undefined;
  if (!STEPS.has(step) || typeof since !== 'string') return undefined;
  return Number.isNaN(Date.parse(since)) ? undefined : { from, step: step as Step, since };
}
