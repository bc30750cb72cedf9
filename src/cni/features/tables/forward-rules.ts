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
  type Verdict,
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

/** A chain of the family’s table `filter`: the one that others share with us, or our own. */
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

/** Of whom rules are that admit the pods of all nodes. No network can be called so. */
const ALL_NODES = 'pods of all nodes';

/**
 * The rules that admit what ranges of pods send and receive, on whichever node: what the node itself leads to pods of others, for a
 * NodePort, has no address of its own pods.
 */
export function rangeAdmissions(ranges: readonly Cidr[]): AdmissionRule[] {
  return admissionRules(ALL_NODES, ranges);
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
 * The changes after which these rules of one family are in force, and the jump to them is in its place; empty when all is so. For
 * a family that has a FORWARD chain: where there is none, nothing is dropped there, and the kernel would refuse the jump (ENOENT).
 */
export function admissionChanges(family: IpFamily, state: ForwardState, rules: readonly AdmissionRule[]): NftChange[] {
  const chain = forwardChain(family, OUR_FORWARD);
  const changes: NftChange[] = [
    ...missingFrom(state, rules).map(
      ({ expressions, comment }): NftChange => ({
        operation: 'add',
        object: { ...ruleIn(chain), expressions, comment },
      }),
    ),
    ...jumpChanges(family, state.forward),
  ];
  return changes.length > 0 ? [{ operation: 'add', object: chain }, ...changes] : [];
}

/** Whether all of these rules and a jump to them are there, in whatever place. */
export function hasAllOf(state: ForwardState, rules: readonly AdmissionRule[]): boolean {
  return missingFrom(state, rules).length === 0 && state.forward.some(isOurJump);
}

/** Whether they are, and no rule of FORWARD that refuses everything is before the jump. */
export function admits(state: ForwardState, rules: readonly AdmissionRule[]): boolean {
  const { end, jumps } = jumpPlaces(state.forward);
  return missingFrom(state, rules).length === 0 && jumps.some(({ place }) => place <= end);
}

function missingFrom({ ours }: ForwardState, rules: readonly AdmissionRule[]): AdmissionRule[] {
  return rules.filter(
    (wanted) =>
      !ours.some(
        ({ comment, expressions }) => comment === wanted.comment && sameExpressions(expressions, wanted.expressions),
      ),
  );
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
 * The changes after which there is one jump, at its place: the end of FORWARD, behind everybody who refuses packets for a reason,
 * such as a network policy or a firewall that was started later; the policy of the chain comes after it. Where FORWARD has a rule
 * of its own that refuses everything, which stands for a policy, the place is before the first one: behind it no packet comes.
 *
 * A jump that leads everything to a chain that refuses it is somebody's decision, not a policy (shorewall's `-g reject`): the place
 * is behind it, and nothing is let through (obstacles/obstacles.ts).
 */
function jumpChanges(family: IpFamily, forward: readonly NftRule[]): NftChange[] {
  const { end, refusal, jumps } = jumpPlaces(forward);
  const kept = jumps.find(({ place }) => place === end);
  const expressions = [counter, jump(OUR_FORWARD)];
  const object = { ...ruleIn(forwardChain(family, 'FORWARD')), expressions, comment: JUMP_COMMENT };
  const made: NftChange = refusal
    ? { operation: 'insert', object: { ...object, position: refusal.handle } }
    : { operation: 'add', object };
  return [...(kept ? [] : [made]), ...jumps.filter((one) => one !== kept).map(({ rule }) => remove(rule))];
}

interface JumpPlaces {
  /** How many rules of others are to be before the jump, and the one after it, if there is one. */
  readonly end: number;
  readonly refusal: NftRule | undefined;
  /** The jumps there are, each with how many rules of others are before it. */
  readonly jumps: readonly { readonly rule: NftRule; readonly place: number }[];
}

function jumpPlaces(forward: readonly NftRule[]): JumpPlaces {
  const others = forward.filter((rule) => !isOurJump(rule));
  const refusal = others.find(refusesAll);
  const jumps = forward.filter(isOurJump).map((rule, earlier) => ({ rule, place: forward.indexOf(rule) - earlier }));
  return { end: refusal ? others.indexOf(refusal) : others.length, refusal, jumps };
}

/** Whether a rule drops or rejects whatever comes to it. */
function refusesAll(rule: NftRule): boolean {
  // Of the targets of xtables only this one refuses; LOG, for one, lets packets go on.
  const isReject = (expression: Expression) =>
    expression.kind === 'reject' || (expression.kind === 'target' && expression.name === 'REJECT');
  return (
    verdictForAll(rule)?.kind === 'drop' ||
    (rule.expressions.some(isReject) && rule.expressions.every((one) => isReject(one) || selectsNothing(one)))
  );
}

/** The verdict of a rule that has one for whatever comes to it. */
function verdictForAll({ expressions }: NftRule): Verdict | undefined {
  const last = expressions.at(-1);
  return last?.kind === 'verdict' && expressions.slice(0, -1).every(selectsNothing) ? last.verdict : undefined;
}

/** Whether it only counts or logs, or is the comment of an iptables rule. */
function selectsNothing(expression: Expression): boolean {
  if (expression.kind === 'counter' || expression.kind === 'log') return true;
  return expression.kind === 'match' && expression.name === 'comment';
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
