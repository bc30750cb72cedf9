import { type Cidr, type IpFamily, isNotFound } from '../../core/index.ts';
import type { Netlink } from '../../netlink/index.ts';
import type { NftReader, NftRuleset } from '../../netlink/nftables/index.ts';
import { listLinks } from '../../netlink/route/index.ts';
import { failpoint, legacyForwardRefuses } from '../../sys/index.ts';
import { withRuleset } from '../link/conversations.ts';
import { withNodeLock } from '../link/node-lock.ts';
import type { AttachmentKey } from '../protocol/attachment-key.ts';
import type { AttachmentFeature, FeatureContext } from './feature.ts';
import {
  type AdmissionRule,
  admissionChanges,
  admissionRules,
  type ForwardState,
  forwardChain,
  OUR_FORWARD,
  withdrawalChanges,
} from './tables/forward-rules.ts';
import { retried } from './tables/pod-ruleset.ts';
import { IP_FAMILIES } from './tables/pod-table.ts';

/**
 * Passage for pods through a FORWARD chain that drops what nobody admits, as Docker makes it.
 *
 * An accept in one nftables table does not keep another table from dropping: it has to be in the chain that drops. In those
 * of iptables-nft it can be put by netlink. Legacy iptables has no netlink interface, and nftables tables of other programs
 * are theirs to arrange: what is found there is reported, with what to do.
 *
 * A node may have no FORWARD chain, as a kubelet leaves it. Nothing drops there then, and nothing is made. When the chain
 * comes later, with Docker for one, the agent's guard adds what is wanted (reassert.ts), and so does the next ADD.
 */
export const firewall: AttachmentFeature = {
  name: 'firewall',

  setUp({ key, host, ips, undo, warn }) {
    undo.add('admit pods through the firewall', () => withdraw(host, key.network, key));
    withNodeLock(() =>
      withRuleset((ruleset) => {
        admit(ruleset, rulesFor(key, ips));
        for (const obstacle of obstacles(ruleset, ips)) warn(obstacle);
      }),
    );
    failpoint('firewall');
    return [];
  },

  check({ key, ips }) {
    const rules = rulesFor(key, ips);
    return withRuleset((ruleset) =>
      IP_FAMILIES.flatMap((family) => {
        const ofFamily = rules.filter((rule) => rule.family === family);
        if (ofFamily.length === 0) return [];
        if (!hasForward(ruleset, family)) return [];
        const missing = admissionChanges(family, readForward(ruleset, family), ofFamily);
        if (missing.length === 0) return [];
        return [`Chain FORWARD of the ${family} filter table does not admit the pod`];
      }),
    );
  },

  tearDown({ key, host }) {
    withdraw(host, key.network, key);
  },

  collect({ network, host }) {
    withdraw(host, network);
  },
};

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

/**
 * Takes the rules of a network away once no pod of it is left. Under the node's lock, which ADD holds while it looks for
 * them: its own link is there by then.
 *
 * @param leaving an attachment that does not count any more, although its link may still be there
 */
function withdraw(host: Netlink, network: string, leaving?: AttachmentKey): void {
  withNodeLock(() => {
    const isUsed = listLinks(host).some(
      ({ kind, name, alias }) => kind === 'veth' && alias.startsWith(`${network}/`) && name !== leaving?.hostName,
    );
    if (isUsed) return;
    withRuleset((ruleset) => {
      for (const family of IP_FAMILIES) {
        retried(isNotFound, () => {
          const changes = withdrawalChanges(family, readForward(ruleset, family), network);
          if (changes.length > 0) ruleset.commit(changes);
        });
      }
    });
  });
}

/** The rules of ours and of FORWARD. Reads two chains alone: the tables of iptables-nft may hold a proxy's chains by the thousand. */
export function readForward(ruleset: NftReader, family: IpFamily): ForwardState {
  const [forward, ours] = (['FORWARD', OUR_FORWARD] as const).map((name) =>
    ruleset.listRules(forwardChain(family, name)),
  );
  return { forward: forward!, ours: ours! };
}

function hasForward(ruleset: NftReader, family: IpFamily): boolean {
  return ruleset.getChain(forwardChain(family, 'FORWARD')) !== undefined;
}

/** A sentence for each thing that may drop the pod's packets and cannot be changed from here. */
function obstacles(ruleset: NftReader, ips: readonly { readonly address: Cidr }[]): string[] {
  const families = IP_FAMILIES.filter((family) => ips.some(({ address }) => address.address.family === family));
  const foreign = ruleset
    .listChains('inet')
    .filter(({ base }) => base?.hook === 'forward' && base.policy === 'drop')
    .map(
      ({ table, name }) =>
        `Chain "${name}" of the nftables table "inet ${table}" drops what it does not accept itself; have it accept the pods' addresses`,
    );
  const legacy = families
    .filter(legacyForwardRefuses)
    .map(
      (family) =>
        `Chain FORWARD of legacy iptables (${family}) drops what it does not accept itself, and cannot be changed by netlink; have it accept the pods' addresses or use iptables-nft`,
    );
  return [...foreign, ...legacy];
}

function rulesFor({ network }: AttachmentKey, ips: FeatureContext['ips']): AdmissionRule[] {
  return admissionRules(
    network,
    ips.map(({ address }) => address),
  );
}
