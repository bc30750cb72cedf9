import { parseArgs } from 'node:util';
import { NodeplaneError, nearestWord } from '../../core/index.ts';
import type { Program } from '../program.ts';
import type { FlagSpec } from './flag-spec.ts';
import { FLAG_NAMES, type FlagName, type FlagValue, flagNamed } from './flags.ts';

/** The flags that were given, with their values; those that were not are missing. */
export type GivenFlags = { readonly [N in FlagName]?: FlagValue<N> };

/** A command line, taken apart. */
export interface ParsedArguments {
  readonly flags: GivenFlags;
  readonly positionals: readonly string[];
}

/**
 * Reads a command line by the table of flags, with kube-proxy's rules: `_` and `-` in names are the same; a flag given again
 * replaces the earlier value, or adds to it if it is a list or map; `--x` alone is true and never takes the next argument,
 * so that `--x false` has the positional argument `false`.
 *
 * node:util's parseArgs splits the words. commander cannot be told of a flag that takes `--x` and `--x=false` but not
 * `--x false`, which is what every boolean flag of a Go program is.
 *
 * @throws ERR_CONFIG for an unknown flag, a missing value, or a value that the flag's type does not accept
 */
export function parseFlags(argv: readonly string[], program: Program): ParsedArguments {
  const known = knownFlags(program);
  const { tokens } = parseArgs({
    args: argv.map((word) => withDashes(word, known)),
    options: Object.fromEntries([...known].map(([name, flag]) => [name, parseArgsOption(flagNamed(flag))])),
    strict: false,
    allowPositionals: true,
    tokens: true,
  });
  const flags: Partial<Record<FlagName, unknown>> = {};
  const positionals: string[] = [];
  for (const token of tokens) {
    if (token.kind === 'positional') positionals.push(token.value);
    if (token.kind !== 'option') continue;
    const name = known.get(token.name);
    if (name === undefined) throw unknownFlag(token.name, token.rawName, argv[token.index] ?? token.rawName, known);
    // parseArgs keeps the "=" of "-v=2".
    const written = token.rawName.startsWith('--') ? token.value : token.value?.replace(/^=/, '');
    const value = readValue(flagNamed(name), token.rawName, written);
    const earlier = flags[name];
    flags[name] = earlier === undefined ? value : (flagNamed(name).type.join?.(earlier, value) ?? value);
  }
  return { flags: flags as GivenFlags, positionals };
}

/** The flags a program knows by all their names. */
export function knownFlags(program: Program): ReadonlyMap<string, FlagName> {
  const own = program === 'nodeplane agent';
  const known = new Map<string, FlagName>();
  for (const name of FLAG_NAMES) {
    const spec = flagNamed(name);
    if (own || !spec.own) known.set(name, name);
    if (own && spec.ownAlias) known.set(spec.ownAlias, name);
  }
  return known;
}

function parseArgsOption(spec: FlagSpec<unknown>): { type: 'string' | 'boolean'; short?: string } {
  const type = spec.bareValue === undefined ? 'string' : 'boolean';
  return spec.shorthand ? { type, short: spec.shorthand } : { type };
}

/** `--proxy_mode=x` as `--proxy-mode=x`. Words that name no flag of ours stay as they are: they may be values. */
function withDashes(word: string, known: ReadonlyMap<string, FlagName>): string {
  const [, name, rest] = /^--([^=]+)(.*)$/s.exec(word) ?? [];
  const dashed = name?.replaceAll('_', '-');
  return dashed !== undefined && known.has(dashed) ? `--${dashed}${rest}` : word;
}

function readValue(spec: FlagSpec<unknown>, written: string, word: string | undefined): unknown {
  if (word === undefined) {
    if (spec.bareValue !== undefined) return spec.bareValue;
    throw new NodeplaneError('ERR_CONFIG', `flag needs an argument: ${written} (${spec.type.expected})`);
  }
  const value = spec.type.fromFlag(word);
  if (value !== undefined) return value;
  throw new NodeplaneError(
    'ERR_CONFIG',
    `invalid argument "${word}" for "${written}" flag: expected ${spec.type.expected}`,
  );
}

function unknownFlag(name: string, written: string, word: string, known: Iterable<readonly [string, unknown]>): Error {
  if (!written.startsWith('--')) {
    const what = `unknown shorthand flag: '${name}' in ${word}`;
    return new NodeplaneError('ERR_CONFIG', `${what} (--help shows all flags)`);
  }
  // `--no-cleanup` means anything but `--cleanup`.
  const meant = /^no[-_]/.test(name)
    ? undefined
    : nearestWord(
        name,
        Array.from(known, ([other]) => other),
      );
  const remedy = meant ? `did you mean --${meant}?` : '--help shows all flags';
  return new NodeplaneError('ERR_CONFIG', `unknown flag: --${name} (${remedy})`);
}
