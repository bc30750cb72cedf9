import { compareText } from '../../core/index.ts';
import { NO_EFFECT } from '../no-effect.ts';
import type { Program } from '../program.ts';
import { type FlagName, flagNamed } from './flags.ts';
import { type GivenFlags, knownFlags } from './parse-flags.ts';

const PURPOSE: Readonly<Record<Program, string>> = {
  'kube-proxy':
    'Makes Services work on this node: programs the kernel so that connections to a Service reach its endpoints.\n' +
    'Takes the flags and the configuration file of kube-proxy.',
  'nodeplane agent':
    'Makes Services work on this node, until it is told to stop; its rules stay in place then.\n' +
    'Takes the flags and the configuration file of kube-proxy, and some of its own.',
};

/** The answer to `--help`. */
export function helpText(program: Program): string {
  return `${PURPOSE[program]}\n\n${usageText(program)}`;
}

/** How the program is called: all flags that a user should know, with defaults. */
export function usageText(program: Program): string {
  const known = knownFlags(program);
  const byName = new Map<FlagName, string[]>();
  for (const [written, name] of known) byName.set(name, [...(byName.get(name) ?? []), written]);
  const lines = [...byName]
    .filter(([name]) => !flagNamed(name).deprecated && !flagNamed(name).ignored)
    .sort(([a], [b]) => compareText(a, b))
    .map(([name, writings]) => flagLines(name, writings));
  return `Usage:\n  ${program} [flags]\n\nFlags:\n${lines.join('')}`;
}

function flagLines(name: FlagName, writings: readonly string[]): string {
  const { shorthand, type, fallback, help, bareValue, path } = flagNamed(name);
  const names = [...(shorthand ? [`-${shorthand}`] : []), ...writings.map((written) => `--${written}`)];
  // What works without a value is shown without one.
  const value = bareValue === undefined ? ` ${type.placeholder}` : '';
  const shown = type.isZero(fallback) ? '' : ` (default ${type.toFlag(fallback)})`;
  const unread = path && NO_EFFECT[path];
  const effect = unread === undefined ? '' : `. No effect: ${unread}`;
  return `  ${names.join(', ')}${value}\n        ${help}${effect}${shown}\n`;
}

/** Every flag by name with its value as text, given or not. */
export function flagValues(flags: GivenFlags, program: Program): Readonly<Record<string, string>> {
  const names = [...new Set(knownFlags(program).values())].sort();
  return Object.fromEntries(
    names.map((name) => {
      const { type, fallback } = flagNamed(name);
      return [name, type.toFlag(flags[name] ?? fallback)];
    }),
  );
}

/** What kube-proxy logs about its flags at verbosity 1. */
export function flagLog(flags: GivenFlags, program: Program): string[] {
  return Object.entries(flagValues(flags, program)).map(([name, value]) => `FLAG: --${name}=${JSON.stringify(value)}`);
}
