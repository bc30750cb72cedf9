import { type IptablesVariant, targetOf } from '../../src/proxy/rules/index.ts';

/** One chain: built in when it has a policy. */
export interface FakeChain {
  policy: string | undefined;
  readonly rules: string[];
}

/** One table: its chains by name. */
export type FakeTable = Map<string, FakeChain>;

/** Why a command was not done. */
export class CommandRefused extends Error {
  /** What iptables-restore ends with. */
  readonly status: number;
  /** Counted from 1; undefined for the line of the command. */
  readonly line: number | undefined;

  constructor(status: number, message: string, line?: number) {
    super(message);
    this.status = status;
    this.line = line;
  }
}

/** The built-in chains of each table, in the order iptables-save prints them (iptables/nft.c `xtables_ipv4`). */
export const BUILT_IN_CHAINS: Readonly<Record<string, readonly string[]>> = {
  mangle: ['PREROUTING', 'INPUT', 'FORWARD', 'OUTPUT', 'POSTROUTING'],
  raw: ['PREROUTING', 'OUTPUT'],
  filter: ['INPUT', 'FORWARD', 'OUTPUT'],
  nat: ['PREROUTING', 'INPUT', 'OUTPUT', 'POSTROUTING'],
};

/** Targets that are not chains, of those our rules and their neighbours' use. */
const TARGETS = new Set(
  'ACCEPT CT DNAT DROP LOG MARK MASQUERADE NFLOG NOTRACK REDIRECT REJECT RETURN SET SNAT TCPMSS'.split(' '),
);

const NO_CHAIN = 'No chain/target/match by that name.';
const NO_RULE = 'Bad rule (does a matching rule exist in that chain?).';

/** A table as the kernel makes it: built-in chains that accept, and no rules. */
export function newTable(name: string): FakeTable {
  return new Map(BUILT_IN_CHAINS[name]!.map((chain) => [chain, { policy: 'ACCEPT', rules: [] }]));
}

/** A copy that shares nothing with the original. */
export function copyTable(table: FakeTable): FakeTable {
  return new Map([...table].map(([name, { policy, rules }]) => [name, { policy, rules: [...rules] }]));
}

/**
 * Does one line of iptables-restore's input between `*TABLE` and `COMMIT`: a declaration (`:CHAIN POLICY [P:B]`) or one of
 * the commands -A, -I, -D, -F and -X. Rules are compared as text.
 *
 * Most of what a command needs to be there is looked for by both variants before the kernel is asked. What nf_tables
 * alone finds out goes to `kernelRefuses`: nothing of the table is kept then, but the lines that follow are looked at.
 *
 * @throws CommandRefused
 */
export function applyLine(
  table: FakeTable,
  line: string,
  variant: IptablesVariant,
  kernelRefuses: (message: string) => void,
): void {
  if (line.startsWith(':')) {
    declare(table, line);
    return;
  }
  const [, command, name, rest = ''] = /^(?:\[\d+:\d+\] )?-([AIDFX]) (\S+)(?: (.*))?$/.exec(line) ?? [];
  if (!command || !name) throw new Error(`The fake iptables does not know "${line}"`);
  const chain = table.get(name);
  if (command === 'X' && chain?.policy !== undefined) throw new Error('The fake iptables deletes no built-in chains');
  if (/[ADI]/.test(command)) checkTarget(table, rest);
  if (!chain) throw new CommandRefused(1, command === 'D' ? NO_RULE : NO_CHAIN);
  switch (command) {
    case 'F':
      chain.rules.length = 0;
      break;
    case 'X':
      if (chain.rules.length > 0 || isReferred(table, name)) {
        if (variant === 'legacy') throw new CommandRefused(1, 'Directory not empty or too many links');
        kernelRefuses(`CHAIN_DEL failed (Device or resource busy): chain ${name}`);
      }
      table.delete(name);
      break;
    case 'D': {
      const at = chain.rules.indexOf(rest);
      if (at < 0) throw new CommandRefused(1, NO_RULE);
      chain.rules.splice(at, 1);
      break;
    }
    default: {
      const [, position = '1', rule = ''] =
        command === 'I' ? /^(?:(\d+)(?: |$))?(.*)$/.exec(rest)! : [undefined, undefined, rest];
      const at = command === 'A' ? chain.rules.length : Number(position) - 1;
      if (at > chain.rules.length) throw new CommandRefused(1, 'Index of insertion too big.');
      if (isBuiltIn(table, targetOf(rule))) {
        kernelRefuses(`${additionName(table, line)} failed (Operation not supported): rule in chain ${name}`);
      }
      chain.rules.splice(at, 0, rule);
    }
  }
}

/** What iptables-nft asks of the kernel for -A or -I: a place behind the last rule is asked for as the end of the chain. */
export function additionName(table: FakeTable, line: string): 'RULE_APPEND' | 'RULE_INSERT' {
  const [, name = '', position = '1'] = /-I (\S+)(?: (\d+)(?: |$))?/.exec(line) ?? [];
  const before = Number(position) - 1;
  return name === '' || (before > 0 && before === table.get(name)?.rules.length) ? 'RULE_APPEND' : 'RULE_INSERT';
}

/** Whether a packet that enters a built-in chain can come round to a chain it is in. */
export function hasLoop(table: FakeTable): boolean {
  const done = new Set<string>();
  const within = new Set<string>();
  const visit = (name: string): boolean => {
    if (within.has(name)) return true;
    if (done.has(name)) return false;
    within.add(name);
    const found = (table.get(name)?.rules ?? []).some((rule) => {
      const target = targetOf(rule);
      return target !== undefined && table.has(target) && visit(target);
    });
    within.delete(name);
    done.add(name);
    return found;
  };
  return [...table].some(([name, { policy }]) => policy !== undefined && visit(name));
}

/** The table as iptables-save prints it: built-in chains first, then the others by name. */
export function printTable(name: string, table: FakeTable): string {
  const builtIn = BUILT_IN_CHAINS[name]!;
  const own = [...table.keys()].filter((chain) => !builtIn.includes(chain)).sort();
  const chains = [...builtIn, ...own].map((chain) => [chain, table.get(chain)!] as const);
  return [
    `*${name}`,
    ...chains.map(([chain, { policy = '-' }]) => `:${chain} ${policy} [0:0]`),
    ...chains.flatMap(([chain, { rules }]) => rules.map((rule) => `-A ${chain} ${rule}`.trimEnd())),
    'COMMIT\n',
  ].join('\n');
}

/** Makes a chain or empties it; a built-in one gets its policy and keeps its rules. */
function declare(table: FakeTable, line: string): void {
  const [, name, policy] = /^:(\S+) (\S+)/.exec(line) ?? [];
  const chain = table.get(name!);
  if (chain?.policy !== undefined) {
    if (policy !== '-') chain.policy = policy;
  } else {
    table.set(name!, { policy: undefined, rules: [] });
  }
}

function isReferred(table: FakeTable, name: string): boolean {
  return [...table.values()].some(({ rules }) => rules.some((rule) => targetOf(rule) === name));
}

/** A target is looked for before the chain of the rule is. */
function checkTarget(table: FakeTable, rule: string): void {
  const target = targetOf(rule);
  if (target === undefined || TARGETS.has(target) || table.has(target)) return;
  throw new CommandRefused(2, `Chain '${target}' does not exist`);
}

function isBuiltIn(table: FakeTable, target: string | undefined): boolean {
  return target !== undefined && table.get(target)?.policy !== undefined;
}
