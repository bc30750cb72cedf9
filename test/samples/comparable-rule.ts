import type { Extension, Option, ParsedRule } from '../../src/explain/index.ts';

/** Targets whose options change nothing that is looked at, or that nobody evaluates: they are not read. */
const WITHOUT_OPTIONS = ['LOG', 'NFLOG', 'TCPMSS', 'CHECKSUM', 'TRACE'];
/** Of target SET those that change packets. */
const OF_SET = ['--map-set', '--map-mark', '--map-prio', '--map-queue'];
const NUMBERS: Readonly<Record<string, string>> = { gre: '47' };

/** A rule as it is compared, read from the kernel or printed: other names of the same are one name. */
export function comparable({ own, matches, target }: ParsedRule): ParsedRule {
  return {
    own: own.map((option) =>
      option.name === '-p' ? { ...option, values: option.values.map((name) => NUMBERS[name] ?? name) } : option,
    ),
    matches: matches.map(comparableMatch),
    target: target && { ...comparableTarget(target), goto: target.goto },
  };
}

/** `-m state --state NEW` is `-m conntrack --ctstate NEW` in the kernel. */
export function comparableMatch({ name, options }: Extension): Extension {
  if (name !== 'state') return { name, options };
  return { name: 'conntrack', options: options.map((option) => ({ ...option, name: '--ctstate' })) };
}

/** `-j NOTRACK` is `-j CT --notrack` in the kernel. */
export function comparableTarget({ name, options }: Extension): Extension {
  const notrack: Option = { name: '--notrack', values: [], inverted: false };
  if (name === 'NOTRACK') return { name: 'CT', options: [notrack] };
  if (WITHOUT_OPTIONS.includes(name)) return { name, options: [] };
  return { name, options: name === 'SET' ? options.filter((option) => OF_SET.includes(option.name)) : options };
}
