import { type Drift, NodeplaneError } from '../../../core/index.ts';
import type {
  BaseChain,
  ChainRef,
  NftFamily,
  NftReader,
  NftRule,
  NftRuleset,
} from '../../../netlink/nftables/index.ts';
import { baseText } from '../../../netlink/nftables/text/index.ts';
import { DSTNAT, FILTER, MANGLE, SRCNAT } from '../../../nft/index.ts';
import type { ForeignRule } from '../restore.ts';
import { targetOf } from '../save.ts';

/** A jump of ours out of a chain that iptables has from the start. */
export interface BaseJump extends ForeignRule {
  readonly table: string;
}

/** A chain that is not at the hook where iptables has it. */
export interface MisplacedChain {
  readonly ref: ChainRef;
  readonly meant: BaseChain;
  /** Undefined: it is at none, so that no packet enters it. */
  readonly found: BaseChain | undefined;
}

const filter = (hook: BaseChain['hook'], priority: number): BaseChain => ({ type: 'filter', hook, priority });
const nat = (hook: BaseChain['hook'], priority: number): BaseChain => ({ type: 'nat', hook, priority });

/** As iptables-nft makes the chains (xtables_ipv4 of its nft.c, the same for IPv6), and the only way in which it knows them again. */
const BASE_CHAINS: Readonly<Record<string, Readonly<Record<string, BaseChain>>>> = {
  filter: {
    INPUT: filter('input', FILTER),
    FORWARD: filter('forward', FILTER),
    OUTPUT: filter('output', FILTER),
  },
  mangle: {
    PREROUTING: filter('prerouting', MANGLE),
    OUTPUT: { type: 'route', hook: 'output', priority: MANGLE },
  },
  nat: {
    PREROUTING: nat('prerouting', DSTNAT),
    OUTPUT: nat('output', DSTNAT),
    POSTROUTING: nat('postrouting', SRCNAT),
  },
};

/**
 * Which of the chains with jumps of ours others have made anew elsewhere. A policy is no part of that: it is others' to choose.
 * Throws KernelError.
 */
export function misplacedChains(nft: NftReader, family: NftFamily, jumps: readonly BaseJump[]): MisplacedChain[] {
  const seen = new Set<string>();
  return jumps.flatMap(({ table, chain: name }) => {
    const meant = BASE_CHAINS[table]?.[name];
    if (!meant || seen.has(`${table} ${name}`)) return [];
    seen.add(`${table} ${name}`);
    const ref: ChainRef = { kind: 'chain', family, table, name };
    // A chain that is missing comes with its jump.
    const chain = nft.getChain(ref);
    return chain && !sameHook(chain.base, meant) ? [{ ref, meant, found: chain.base }] : [];
  });
}

/** Says where the chain is to be, and where it is. */
export function misplacedDrift({ ref, meant, found }: MisplacedChain): Drift {
  return {
    object: `base chain ${ref.table} ${ref.name}`,
    difference: 'changed',
    ours: [hookText(meant, ref.family)],
    theirs: [hookText(found, ref.family)],
  };
}

/**
 * Makes a chain anew at the hook where iptables has it, with the policy that it has. The kernel moves none.
 *
 * @throws ERR_IPTABLES when rules of others are in it, or lead to it, which would be lost; KernelError
 */
export function putInPlace(nft: NftRuleset, { ref, meant, found }: MisplacedChain, jumps: readonly BaseJump[]): void {
  const targets = new Set(jumps.map(({ rule }) => targetOf(rule)));
  const rules = nft.listRules(ref);
  const others = rules.filter((rule) => !targets.has(leadsTo(rule))).length;
  const users = (nft.getChain(ref)?.use ?? rules.length) - rules.length;
  if (others > 0 || users > 0) throw occupied(ref, meant, found);
  nft.commit([
    { operation: 'delete', object: ref },
    { operation: 'add', object: { ...ref, base: { ...meant, policy: found?.policy } } },
  ]);
}

/**
 * Whether one of our jumps is not there, as after a flush: whoever takes rules away by chains and tables takes those
 * too. A look at some short chains, where to read all rules takes seconds. Throws KernelError.
 */
export function lacksJump(nft: NftReader, family: NftFamily, jumps: readonly BaseJump[]): boolean {
  const found = new Map<string, Set<string | undefined>>();
  return jumps.some(({ table, chain: name, rule }) => {
    const place = `${table} ${name}`;
    if (!found.has(place)) found.set(place, new Set(rulesOf(nft, { kind: 'chain', family, table, name }).map(leadsTo)));
    return !found.get(place)!.has(targetOf(rule));
  });
}

/** None where there is no such chain, or table. */
function rulesOf(nft: NftReader, ref: ChainRef): readonly NftRule[] {
  return nft.getChain(ref) ? nft.listRules(ref) : [];
}

/** The chain that a rule jumps or goes to. */
function leadsTo({ expressions }: NftRule): string | undefined {
  for (const expression of expressions)
    if (expression.kind === 'verdict' && 'chain' in expression.verdict) return expression.verdict.chain;
  return undefined;
}

function sameHook(found: BaseChain | undefined, meant: BaseChain): boolean {
  return found?.type === meant.type && found.hook === meant.hook && found.priority === meant.priority;
}

function hookText(base: BaseChain | undefined, family: NftFamily): string {
  // The policy is not compared.
  return base ? baseText(base, family).replace(/ policy .*/, '') : 'at no hook';
}

function occupied({ family, table, name }: ChainRef, meant: BaseChain, found: BaseChain | undefined): NodeplaneError {
  const message =
    `Chain ${name} of table ${family} ${table} is not where iptables has it (${hookText(found, family)} in place of "${hookText(meant, family)}"), ` +
    `and rules of others are in it or lead to it, so that it is not made anew. Move them and "nft delete chain ${family} ${table} ${name}": it comes back as it is meant`;
  return new NodeplaneError('ERR_IPTABLES', message, { facts: { family, table, chain: name } });
}
