import { type IpFamily, isNotFound } from '../../../core/index.ts';
import type { NftReader, NftRuleset } from '../../../netlink/nftables/index.ts';
import {
  type AdmissionRule,
  admissionChanges,
  type ForwardState,
  forwardChain,
  OUR_FORWARD,
  removalChanges,
  withdrawalChanges,
} from './forward-rules.ts';
import { retried } from './pod-ruleset.ts';
import { IP_FAMILIES } from './pod-table.ts';

/** Puts rules in force, of families that have a FORWARD chain in nf_tables. True if something was missing. */
export function admit(ruleset: NftRuleset, rules: readonly AdmissionRule[]): boolean {
  return IP_FAMILIES.map((family) => {
    const ofFamily = rules.filter((rule) => rule.family === family);
    return ofFamily.length > 0 && admitFamily(ruleset, family, ofFamily);
  }).includes(true);
}

function admitFamily(ruleset: NftRuleset, family: IpFamily, rules: readonly AdmissionRule[]): boolean {
  return retried(isNotFound, () => {
    if (!hasForward(ruleset, family)) return false;
    const changes = admissionChanges(family, readForward(ruleset, family), rules);
    if (changes.length > 0) ruleset.commit(changes);
    return changes.length > 0;
  });
}

/** The families whose FORWARD chain lacks some of these rules. Those without such a chain lack nothing. */
export function familiesNotAdmitted(ruleset: NftReader, rules: readonly AdmissionRule[]): IpFamily[] {
  return IP_FAMILIES.filter((family) => {
    const ofFamily = rules.filter((rule) => rule.family === family);
    if (ofFamily.length === 0 || !hasForward(ruleset, family)) return false;
    return admissionChanges(family, readForward(ruleset, family), ofFamily).length > 0;
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
