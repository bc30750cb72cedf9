import { type Cidr, type IpFamily, NodeplaneError } from '../../core/index.ts';
import type { Netlink } from '../../netlink/index.ts';
import { type NftChain, type NftReader, nftFamily } from '../../netlink/nftables/index.ts';
import { listLinks } from '../../netlink/route/index.ts';
import { failpoint, legacyForwardRefuses } from '../../sys/index.ts';
import { withNodeLock } from '../link/node-lock.ts';
import { withRuleset } from '../link/sockets.ts';
import type { AttachmentKey } from '../protocol/attachment-key.ts';
import type { AttachmentFeature, DesiredRules } from './feature.ts';
import {
  admit,
  familiesNotAdmitted,
  hasAdmitted,
  hasForwardChain,
  isInForce,
  refusalBefore,
  withdraw,
  withdrawAll,
} from './tables/forward-chain.ts';
import { admissionRules } from './tables/forward-rules.ts';
import { IP_FAMILIES } from './tables/pod-table.ts';
import type { WantedAttachment } from './wanted-attachment.ts';

/** The rules that admit what the pod's subnets send and receive. */
function wantedIn({ key, ips }: WantedAttachment): Pick<DesiredRules, 'admissions'> {
  return {
    admissions: admissionRules(
      key.network,
      ips.map(({ address }) => address),
    ),
  };
}

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
  wantedIn,

  setUp(context) {
    const { key, host, ips, undo, warn } = context;
    undo.add('admit pods through the firewall', () => withdrawIfUnused(host, key.network, key));
    withRuleset((ruleset) => {
      // Where nothing is to be changed, nobody need wait for anybody: as on a node that a kubelet has set up, or for a second pod.
      if (hasForwardChain(ruleset) && !isAdmitted(ruleset, context)) {
        withNodeLock(() => admit(ruleset, wantedIn(context).admissions));
      }
      for (const obstacle of unlessChanging(() => obstacles(ruleset, ips)) ?? []) warn(obstacle);
    });
    failpoint('firewall');
    return [];
  },

  check(context) {
    const { admissions } = wantedIn(context);
    return withRuleset((ruleset) => familiesNotAdmitted(ruleset, admissions)).map(
      (family) => `Chain FORWARD of the ${family} filter table does not admit the pod`,
    );
  },

  tearDown({ key, host }) {
    withdrawIfUnused(host, key.network, key);
  },

  collect({ network, host }) {
    withdrawIfUnused(host, network);
  },

  uninstall: (ruleset) =>
    withdrawAll(ruleset).map((family) => `Rules in chain FORWARD of the ${family} filter table: removed`),
};

/** Under the node's lock, as in `withdrawIfUnused`. */
function isAdmitted(ruleset: NftReader, attachment: WantedAttachment): boolean {
  const { admissions } = wantedIn(attachment);
  return withNodeLock(() => isInForce(ruleset, admissions), { shared: true });
}

/**
 * Takes the rules of a network away once no pod of it is left. Under the node's lock, which ADD holds while it looks for
 * them: its own link is there by then.
 *
 * @param leaving an attachment that does not count any more, although its link may still be there
 */
function withdrawIfUnused(host: Netlink, network: string, leaving?: AttachmentKey): void {
  // A list of all links is long, and waits for the kernel's lock of them.
  if (!withRuleset(hasAdmitted)) return;
  withNodeLock(() => {
    const isUsed = listLinks(host).some(
      ({ kind, name, alias }) => kind === 'veth' && alias.startsWith(`${network}/`) && name !== leaving?.hostName,
    );
    if (isUsed) return;
    withRuleset((ruleset) => withdraw(ruleset, network));
  });
}

/**
 * What is only told may be left untold: other ADDs, for one, change the ruleset all the time while many pods start together. Undefined
 * then.
 */
export function unlessChanging(tell: () => string[]): string[] | undefined {
  try {
    return tell();
  } catch (error) {
    if (error instanceof NodeplaneError && error.code === 'ERR_NETLINK_DUMP_INTERRUPTED') return undefined;
    throw error;
  }
}

/** A sentence for each thing that may drop the pod's packets and cannot be changed from here. */
function obstacles(ruleset: NftReader, ips: readonly { readonly address: Cidr }[]): string[] {
  const families = IP_FAMILIES.filter((family) => ips.some(({ address }) => address.address.family === family));
  const refusing = families.flatMap((family) => {
    const chain = refusalBefore(ruleset, family);
    return chain === undefined
      ? []
      : [
          `Chain FORWARD of iptables-nft (${family}) leads what it does not accept before to chain "${chain}", which refuses it; have the firewall that made it accept the pods' addresses`,
        ];
  });
  const legacy = families
    .filter(legacyForwardRefuses)
    .map(
      (family) =>
        `Chain FORWARD of legacy iptables (${family}) drops what it does not accept itself, and cannot be changed by netlink; have it accept the pods' addresses or use iptables-nft`,
    );
  return [...foreignDrops(ruleset, families), ...refusing, ...legacy];
}

/** A sentence for each chain of another program's nftables table that may drop packets of pods. Throws KernelError. */
export function foreignDrops(ruleset: NftReader, families: readonly IpFamily[]): string[] {
  return foreignChains(ruleset, families)
    .filter(({ base }) => base?.hook === 'forward' && base.policy === 'drop')
    .map(
      ({ family, table, name }) =>
        `Chain "${name}" of the nftables table "${family} ${table}" drops what it does not accept itself; have it accept the pods' addresses`,
    );
}

/** Tables of nf_tables whose chains are not looked through: a proxy may have them by the thousand, and no ADD has time for that. */
const PASSED_BY = /^(?:filter|nat|mangle|raw|security|kube-proxy|nodeplane.*)$/;
/** The kernel lists the chains of all tables of a family only: with more in them the others are not looked through either. */
const LONGEST_LISTING = 1000;

/** Chains of others that may see packets of these families, by whatever rules: those of iptables-nft's tables are looked at otherwise. */
function foreignChains(ruleset: NftReader, families: readonly IpFamily[]): NftChain[] {
  const ofFamily = families.map(nftFamily).flatMap((family) => {
    const tables = ruleset.listTables(family);
    const hasOthers = tables.some(({ name }) => !PASSED_BY.test(name));
    const isLong = tables.reduce((count, { use = 0 }) => count + use, 0) > LONGEST_LISTING;
    const ofOthers =
      hasOthers && !isLong ? ruleset.listChains(family).filter(({ table }) => !PASSED_BY.test(table)) : [];
    // By hand a table is often called as iptables calls it, and its chain in small letters.
    const byHand = ruleset.getChain({ kind: 'chain', family, table: 'filter', name: 'forward' });
    return byHand ? [...ofOthers, byHand] : ofOthers;
  });
  return [...ruleset.listChains('inet'), ...ofFamily];
}
