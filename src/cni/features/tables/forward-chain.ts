import { IP_FAMILIES, type IpFamily, isNotFound } from '../../../core/index.ts';
import type { NftReader, NftRuleset } from '../../../netlink/nftables/index.ts';
import {
  type AdmissionRule,
  admissionChanges,
  admits,
  type ForwardState,
  forwardChain,
  hasAllOf,
  OUR_FORWARD,
  removalChanges,
  withdrawalChanges,
} from './forward-rules.ts';
import { retried } from './pod-ruleset.ts';

/**
 * What became of rules that admit pods: they were there; some were missing; others had put rules behind the jump to them, and it
 * was moved, or left where it is.
 */
export type Admission = 'there' | 'missing' | 'moved' | 'left';

/**
 * Puts rules in force, of families that have a FORWARD chain in nf_tables.
 *
 * @param options.movesJump whether a jump that is not the last one any more, and lets pods through still, is moved. @default true
 */
export function admit(
  ruleset: NftRuleset,
  rules: readonly AdmissionRule[],
  { movesJump = true }: { readonly movesJump?: boolean } = {},
): ReadonlySet<Admission> {
  return new Set(
    familiesOf(rules).map(({ family, rules: ofFamily }) =>
      retried(isNotFound, () => {
        if (!hasForward(ruleset, family)) return 'there';
        const state = readForward(ruleset, family);
        const changes = admissionChanges(family, state, ofFamily);
        if (changes.length === 0) return 'there';
        const isMove = hasAllOf(state, ofFamily);
        if (isMove && !movesJump && admits(state, ofFamily)) return 'left';
        ruleset.commit(changes);
        return isMove ? 'moved' : 'missing';
      }),
    ),
  );
}

/** Whether `admit` has nothing to do. */
export function isInForce(ruleset: NftReader, rules: readonly AdmissionRule[]): boolean {
  return familiesOf(rules).every(
    ({ family, rules: ofFamily }) =>
      !hasForward(ruleset, family) || admissionChanges(family, readForward(ruleset, family), ofFamily).length === 0,
  );
}

/**
 * The families in which packets do not come to these rules by way of FORWARD. Those without such a chain need none; rules of others
 * behind the jump are not looked at.
 */
export function familiesNotAdmitted(ruleset: NftReader, rules: readonly AdmissionRule[]): IpFamily[] {
  return familiesOf(rules)
    .filter(
      ({ family, rules: ofFamily }) => hasForward(ruleset, family) && !admits(readForward(ruleset, family), ofFamily),
    )
    .map(({ family }) => family);
}

function familiesOf(rules: readonly AdmissionRule[]) {
  return IP_FAMILIES.flatMap((family) => {
    const ofFamily = rules.filter((rule) => rule.family === family);
    return ofFamily.length > 0 ? [{ family, rules: ofFamily }] : [];
  });
}

/** Takes a network's rules away, and with the last ones our chain and the jump to it. */
export function withdraw(ruleset: NftRuleset, network: string): void {
  for (const family of IP_FAMILIES) {
    retried(isNotFound, () => {
      const changes = withdrawalChanges(family, readForward(ruleset, family), network);
      if (changes.length > 0) ruleset.commit(changes);
    });
  }
}

/** Takes the rules of all networks away. Returns the families that had some. */
export function withdrawAll(ruleset: NftRuleset): IpFamily[] {
  return IP_FAMILIES.filter((family) => {
    const changes = removalChanges(family, readForward(ruleset, family));
    if (changes.length > 0) ruleset.commit(changes);
    return changes.length > 0;
  });
}

/** Reads two chains alone: the tables of iptables-nft may hold a proxy's chains by the thousand. */
function readForward(ruleset: NftReader, family: IpFamily): ForwardState {
  return {
    forward: ruleset.listRules(forwardChain(family, 'FORWARD')),
    ours: ruleset.listRules(forwardChain(family, OUR_FORWARD)),
  };
}

/** Whether either family has a FORWARD chain in nf_tables. */
export function hasForwardChain(ruleset: NftReader): boolean {
  return IP_FAMILIES.some((family) => hasForward(ruleset, family));
}

/** Whether there is anything of `admit`, of whatever network. */
export function hasAdmitted(ruleset: NftReader): boolean {
  return IP_FAMILIES.some((family) => ruleset.getChain(forwardChain(family, OUR_FORWARD)) !== undefined);
}

function hasForward(ruleset: NftReader, family: IpFamily): boolean {
  return ruleset.getChain(forwardChain(family, 'FORWARD')) !== undefined;
}
