/** `! --dport 80`: an option of a match or a target, with its values. */
export interface Option {
  /** `--dport`, `-s`. */
  readonly name: string;
  readonly values: readonly string[];
  readonly inverted: boolean;
}

/** `-m tcp --dport 80` or `-j DNAT --to-destination 10.0.0.1`. */
export interface Extension {
  /** `tcp`, `DNAT`, or the name of a chain. */
  readonly name: string;
  readonly options: readonly Option[];
}

/** A rule as iptables-save prints it, taken apart. */
export interface ParsedRule {
  /** `-s`, `-d`, `-i`, `-o`, `-p`, `-f`. */
  readonly own: readonly Option[];
  readonly matches: readonly Extension[];
  /** Undefined for a rule that only counts. */
  readonly target: (Extension & { readonly goto: boolean }) | undefined;
}

/** A word; what was in quotes is never an option. */
interface Word {
  readonly text: string;
  readonly quoted: boolean;
}

/** Options of the rule itself; they come before the first match, but nothing else has their names. */
const OWN = new Set(['-s', '-d', '-i', '-o', '-p', '-f']);

/** Takes a rule apart, without knowing any extension: an option is what begins with `-`, its values are what follows it. */
export function parseRule(rule: string): ParsedRule {
  const own: Option[] = [];
  const matches: { name: string; options: Option[] }[] = [];
  let target: { name: string; goto: boolean; options: Option[] } | undefined;
  const words = wordsOf(rule);
  let inverted = false;
  for (let at = 0; at < words.length; ) {
    const { text: name, quoted } = words[at++]!;
    if (name === '!' && !quoted) {
      inverted = true;
      continue;
    }
    const values: string[] = [];
    while (at < words.length && !isOption(words[at]!)) values.push(words[at++]!.text);
    if (name === '-m' && !target) matches.push({ name: values[0] ?? '', options: [] });
    else if (name === '-j' || name === '-g') target = { name: values[0] ?? '', goto: name === '-g', options: [] };
    else (OWN.has(name) ? own : (target ?? matches.at(-1))?.options)?.push({ name, values, inverted });
    inverted = false;
  }
  return { own, matches, target };
}

function isOption({ text, quoted }: Word): boolean {
  return !quoted && (text === '!' || /^-[^\d]/.test(text));
}

/** Words are parted by blanks; in double quotes a backslash takes the next character as it is (xtables_save_string). */
function wordsOf(rule: string): Word[] {
  return [...rule.matchAll(/"((?:[^"\\]|\\.)*)"|(\S+)/g)].map(([, inQuotes, bare]) =>
    inQuotes === undefined ? { text: bare!, quoted: false } : { text: inQuotes.replace(/\\(.)/g, '$1'), quoted: true },
  );
}
