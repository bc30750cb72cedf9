import type { Netlink } from '../../netlink/index.ts';
import type { NftReader } from '../../netlink/nftables/index.ts';
import { listLinks } from '../../netlink/route/index.ts';
import { failpoint } from '../../sys/index.ts';
import { withNodeLock } from '../link/node-lock.ts';
import { withRuleset } from '../link/sockets.ts';
import { type AttachmentKey, isPodLink } from '../protocol/attachment-key.ts';
import type { AttachmentFeature, DesiredRules } from './feature.ts';
import { areObstaclesLeft } from './obstacles/left-to-agent.ts';
import { obstaclesTo, unlessChanging } from './obstacles/obstacles.ts';
import { packetsOf } from './obstacles/packets.ts';
import {
  admit,
  familiesNotAdmitted,
  hasAdmitted,
  hasForwardChain,
  isInForce,
  withdraw,
  withdrawAll,
} from './tables/forward-chain.ts';
import { admissionRules } from './tables/forward-rules.ts';
import type { WantedAttachment } from './wanted-attachment.ts';

/** The rules that admit what the pod's subnets send and receive. */
function wantedIn({ key, ips, reach }: WantedAttachment): Pick<DesiredRules, 'admissions' | 'passing'> {
  const subnets = ips.map(({ address }) => address);
  return {
    admissions: admissionRules(key.network, subnets),
    passing: subnets.flatMap((subnet) => packetsOf(subnet, reach)),
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
    const { key, host, undo, warn } = context;
    const { admissions, passing } = wantedIn(context);
    undo.add('admit pods through the firewall', () => withdrawIfUnused(host, key.network, key));
    withRuleset((ruleset) => {
      // Where nothing is to be changed, nobody need wait for anybody: as on a node that a kubelet has set up, or for a second pod.
      if (hasForwardChain(ruleset) && !isAdmitted(ruleset, context)) {
        withNodeLock(() => admit(ruleset, admissions));
      }
      if (areObstaclesLeft()) return;
      for (const obstacle of unlessChanging(() => obstaclesTo(ruleset, passing)) ?? []) warn(obstacle);
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
    const isUsed = listLinks(host).some((link) => isPodLink(link, network) && link.name !== leaving?.hostName);
    if (isUsed) return;
    withRuleset((ruleset) => withdraw(ruleset, network));
  });
}
