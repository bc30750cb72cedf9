import type { Cidr, IpFamily } from '../../../core/index.ts';
import {
  accept,
  type ChainRef,
  counter,
  type Expression,
  jump,
  type NftChange,
  type NftRule,
  nftFamily,
  sameExpressions,
} from '../../../netlink/nftables/index.ts';
import { inBlock } from '../../../nft/index.ts';

/*
 * What iptables-nft keeps in nf_tables are ordinary chains and rules, and rules made by others in the same form are shown by
 * `iptables -S` as if iptables had made them: a comparison of the address, a counter, a verdict, and the comment in the
 * rule's user data. A look-up in a set is not among what it can show (it would show an unconditional accept, and restore
 * that); so there is a pair of rules for each subnet, not an element for each pod.
 */

/** Our chain beside iptables' own ones. */
export const OUR_FORWARD = 'NODEPLANE-FORWARD';
const JUMP_COMMENT = 'pods of nodeplane-cni';
const LONGEST_COMMENT = 127;

export function forwardChain(family: IpFamily, name: 'FORWARD' | typeof OUR_FORWARD): ChainRef {
  return { kind: 'chain', family: nftFamily(family), table: 'filter', name };
}

/** A rule of ours that accepts what comes from, or goes to, a subnet of pods. */
export interface AdmissionRule {
  readonly family: IpFamily;
  readonly expressions: readonly Expression[];
  /** Names the network. */
  readonly comment: string;
}

/** The rules that admit what subnets of a network send and receive. */
export function admissionRules(network: string, subnets: readonly Cidr[]): AdmissionRule[] {
  return subnets.flatMap((subnet) =>
    (['saddr', 'daddr'] as const).map((direction) => ({
      family: subnet.address.family,
      expressions: admission(subnet, direction),
      comment: networkComment(network),
    })),
  );
}

function networkComment(network: string): string {
  return `nodeplane-cni ${network}`.slice(0, LONGEST_COMMENT);
}

/** The rules of a family's filter table that are of interest; none for a chain that does not exist. */
export interface ForwardState {
  readonly forward: readonly NftRule[];
  readonly ours: readonly NftRule[];
}

/**
 * The changes after which these rules of one family are in force; empty when they are. For a family that has a FORWARD
 * chain: where there is none, nothing is dropped there, and the kernel would refuse the jump (ENOENT).
 */
export function admissionChanges(
  family: IpFamily,
  { forward, ours }: ForwardState,
  rules: readonly AdmissionRule[],
): NftChange[] {
  const chain = forwardChain(family, OUR_FORWARD);
  const missing = rules.filter(
    (wanted) =>
      !ours.some(
        ({ comment, expressions }) => comment === wanted.comment && sameExpressions(expressions, wanted.expressions),
      ),
  );
  const changes: NftChange[] = missing.map(({ expressions, comment }) => ({
    operation: 'add',
    object: { ...ruleIn(chain), expressions, comment },
  }));
  if (!forward.some(isOurJump)) changes.push(jumpChange(family, forward));
  return changes.length > 0 ? [{ operation: 'add', object: chain }, ...changes] : [];
}

/** The changes that take a network's rules away, and with the last ones our chain and the jump to it. */
export function withdrawalChanges(family: IpFamily, state: ForwardState, network: string): NftChange[] {
  const comment = networkComment(network);
  const gone = state.ours.filter((rule) => rule.comment === comment);
  return gone.length === state.ours.length ? removalChanges(family, state) : gone.map(remove);
}

/** The changes that take our chain away, with its rules and the jump to it; empty when there is neither. */
export function removalChanges(family: IpFamily, { forward, ours }: ForwardState): NftChange[] {
  const rules = [...ours, ...forward.filter(isOurJump)];
  if (rules.length === 0) return [];
  return [...rules.map(remove), { operation: 'destroy', object: forwardChain(family, OUR_FORWARD) }];
}

function remove(object: NftRule): NftChange {
  return { operation: 'delete', object };
}

/**
 * The jump goes to the end of FORWARD, behind everybody who refuses packets for a reason, such as a network policy; the
 * policy of the chain comes after it. Where a rule that refuses everything is the last one, it goes before that.
 */
function jumpChange(family: IpFamily, forward: readonly NftRule[]): NftChange {
  const expressions = [counter, jump(OUR_FORWARD)];
  const object = { ...ruleIn(forwardChain(family, 'FORWARD')), expressions, comment: JUMP_COMMENT };
  const last = forward.at(-1);
  return last && refusesAll(last)
    ? { operation: 'insert', object: { ...object, position: last.handle } }
    : { operation: 'add', object };
}

/** Whether a rule drops or rejects whatever comes to it. */
function refusesAll({ expressions }: NftRule): boolean {
  return expressions.every((expression) => {
    if (expression.kind === 'verdict') return expression.verdict.kind === 'drop';
    if (expression.kind === 'reject' || expression.kind === 'counter') return true;
    // A target of xtables (REJECT, for one) in the last place, or the comment of an iptables rule.
    return expression.kind === 'target' || (expression.kind === 'match' && expression.name === 'comment');
  });
}

function isOurJump(rule: NftRule): boolean {
  return leadsTo(rule, OUR_FORWARD);
}

/** Whether a rule jumps or goes to a chain. */
export function leadsTo({ expressions }: NftRule, chain: string): boolean {
  return expressions.some(
    (expression) =>
      expression.kind === 'verdict' && 'chain' in expression.verdict && expression.verdict.chain === chain,
  );
}

function admission(subnet: Cidr, direction: 'saddr' | 'daddr'): Expression[] {
  return [...inBlock(direction, subnet), counter, accept];
}

function ruleIn({ family, table, name }: ChainRef): Pick<NftRule, 'kind' | 'family' | 'table' | 'chain'> {
  return { kind: 'rule', family, table, chain: name };
}
