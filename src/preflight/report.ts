import { plainText } from '../core/index.ts';
import { type Finding, STATES, type State } from './finding.ts';

/** Of the JSON's shape: grows when a field changes its meaning or goes, not when one is added. */
const SCHEMA_VERSION = 1;

/** What `nodeplane preflight` found, as `-o json` writes it (docs/preflight.md). */
export interface PreflightReport {
  readonly schemaVersion: typeof SCHEMA_VERSION;
  /** Of the program. */
  readonly version: string;
  readonly node: string;
  /** The configured one. */
  readonly mode: string;
  /** `fails` if anything fails; with --strict also if there is a warning, or something could not be told. */
  readonly result: 'ok' | 'fails';
  readonly counts: Readonly<Record<State, number>>;
  /** In the order of the checks, which is stable. */
  readonly findings: readonly Finding[];
}

/** What a report is made of besides its findings. */
export interface ReportFacts {
  readonly version: string;
  readonly node: string;
  readonly mode: string;
  /** Whether warnings, and what cannot be told, make it fail. */
  readonly strict: boolean;
}

/**
 * The report of what the checks found. Its result is `fails` when one of them fails; where warnings count (`strict`), also for a
 * warning and for what cannot be told.
 */
export function reportOf(findings: readonly Finding[], { version, node, mode, strict }: ReportFacts): PreflightReport {
  const count = (state: State) => findings.filter((finding) => finding.state === state).length;
  const counts = Object.fromEntries(STATES.map((state) => [state, count(state)])) as Record<State, number>;
  const isBad = counts.fails > 0 || (strict && counts.warning + counts.unknown > 0);
  return { schemaVersion: SCHEMA_VERSION, version, node, mode, result: isBad ? 'fails' : 'ok', counts, findings };
}

/** How states are written for people. */
const WORDS: Readonly<Record<State, string>> = {
  ok: 'ok',
  warning: 'warning',
  fails: 'fails',
  unknown: 'cannot tell',
  skipped: 'not looked at',
};

/** One line a check, in groups, and how many of each state there are. No name can write to the terminal as anything but text. */
export function reportText({ node, mode, counts, findings }: PreflightReport): string {
  const lines = [`Node ${node}, mode ${mode}`];
  const widths = [findings.map(({ state }) => WORDS[state].length), findings.map(({ check }) => check.length)].map(
    (lengths) => Math.max(...lengths),
  );
  let group = '';
  for (const { check, state, message, remedy } of findings) {
    const own = check.slice(0, check.indexOf('.'));
    if (own !== group) lines.push('');
    group = own;
    const advice = remedy === undefined ? '' : ` -> ${remedy}`;
    lines.push(`${WORDS[state].padEnd(widths[0]!)}  ${check.padEnd(widths[1]!)}  ${message}${advice}`);
  }
  const summary = STATES.map((state) => `${counts[state]} ${WORDS[state]}`).join(', ');
  return [...lines, '', summary, ''].map(plainText).join('\n');
}

/** The report as JSON, with what a terminal could take for a command in JSON's own writing. */
export function reportJson(report: PreflightReport): string {
  return `${JSON.stringify(report, undefined, 2).split('\n').map(plainText).join('\n')}\n`;
}
