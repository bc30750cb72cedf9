import { readFileSync } from 'node:fs';
import { type Cidr, type IpFamily, isNotFound } from '../../core/index.ts';
import { listLinks, type Netlink, type NftReader, type NftRuleset } from '../../netlink/index.ts';
import type { AttachmentKey } from '../attachment-key.ts';
import type { NetworkConfig } from '../config.ts';
import { CNI_ERROR, CniError } from '../errors.ts';
import { withNodeLock } from '../node-lock.ts';
import type { AttachmentFeature } from './feature.ts';
import {
  admissionChanges,
  type ForwardState,
  filterTable,
  forwardChain,
  OUR_FORWARD,
  withdrawalChanges,
} from './forward-rules.ts';
import { retried, withRuleset } from './pod-ruleset.ts';
import { IP_FAMILIES } from './pod-table.ts';
import { withSubnets } from './wanted-attachment.ts';

/** Tables of legacy iptables in use in the thread's namespace, one a line. */
const LEGACY_TABLES: Record<IpFamily, string> = {
  IPv4: '/proc/thread-self/net/ip_tables_names',
  IPv6: '/proc/thread-self/net/ip6_tables_names',
};

/**
 * Passage for pods through a FORWARD chain that drops what nobody admits, as Docker makes it.
 *
 * An accept in one nftables table does not keep another table from dropping: it has to be in the chain that drops. In those
 * of iptables-nft it can be put by netlink. Legacy iptables has no netlink interface, and nftables tables of other programs
 * are theirs to arrange: what is found there is reported, with what to do.
 */
export const firewall: AttachmentFeature = {
  name: 'firewall',

  setUp({ key, config, host, ips, undo, report }) {
    refusePolicy(config);
    undo.add('admit pods through the firewall', () => withdraw(host, key.network, key));
    withNodeLock(() =>
      withRuleset((ruleset) => {
        for (const [family, subnets] of subnetsByFamily(withSubnets(config, ips)))
          admit(ruleset, family, key.network, subnets);
        for (const obstacle of obstacles(ruleset, ips)) report(obstacle);
      }),
    );
    return [];
  },

  check({ key, config, ips }) {
    return withRuleset((ruleset) =>
      subnetsByFamily(withSubnets(config, ips)).flatMap(([family, subnets]) => {
        const missing = admissionChanges(family, forwardState(ruleset, family), key.network, subnets);
        if (missing.length === 0 || !hasForward(ruleset, family)) return [];
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

/** Admits subnets of a network if there is a FORWARD chain in nf_tables. True if something was missing. */
export function admit(ruleset: NftRuleset, family: IpFamily, network: string, subnets: readonly Cidr[]): boolean {
  try {
    return retried(isNotFound, () => {
      const changes = admissionChanges(family, forwardState(ruleset, family), network, subnets);
      if (changes.length > 0) ruleset.commit(changes);
      return changes.length > 0;
    });
  } catch (error) {
    if (isNotFound(error)) return false;
    throw error;
  }
}

/** The subnets of a pod's addresses. */
export function subnetsByFamily(ips: readonly { readonly address: Cidr }[]): [IpFamily, Cidr[]][] {
  const ofFamily = (family: IpFamily) =>
    ips.map(({ address }) => address).filter(({ address }) => address.family === family);
  return IP_FAMILIES.map((family): [IpFamily, Cidr[]] => [family, ofFamily(family)]).filter(
    ([, subnets]) => subnets.length > 0,
  );
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
          const changes = withdrawalChanges(family, forwardState(ruleset, family), network);
          if (changes.length > 0) ruleset.commit(changes);
        });
      }
    });
  });
}

/** Reads two chains alone: the tables of iptables-nft may hold a proxy's chains by the thousand. */
function forwardState(ruleset: NftReader, family: IpFamily): ForwardState {
  const [forward, ours] = (['FORWARD', OUR_FORWARD] as const).map((name) =>
    ruleset.listRules(forwardChain(family, name)),
  );
  return { forward: forward!, ours: ours! };
}

function hasForward(ruleset: NftReader, family: IpFamily): boolean {
  return ruleset.listChains(filterTable(family)).some(({ name }) => name === 'FORWARD');
}

/** A sentence for each thing that may drop the pod's packets and cannot be changed from here. */
function obstacles(ruleset: NftReader, ips: readonly { readonly address: Cidr }[]): string[] {
  const families = subnetsByFamily(ips).map(([family]) => family);
  const foreign = ruleset
    .listChains('inet')
    .filter(({ base }) => base?.hook === 'forward' && base.policy === 'drop')
    .map(
      ({ table, name }) =>
        `Chain "${name}" of the nftables table "inet ${table}" drops what it does not accept itself; have it accept the pods' addresses`,
    );
  const legacy = families
    .filter((family) => namesOf(LEGACY_TABLES[family]).includes('filter'))
    .map(
      (family) =>
        `Legacy iptables (${family}) has a filter table, which cannot be changed by netlink; if its FORWARD chain drops, have it accept the pods' addresses or use iptables-nft`,
    );
  return [...foreign, ...legacy];
}

function namesOf(path: string): string[] {
  try {
    return readFileSync(path, 'utf8').split('\n');
  } catch {
    // No legacy iptables in this kernel, or never used.
    return [];
  }
}

function refusePolicy({ features }: NetworkConfig): void {
  const policy = features.firewall?.ingressPolicy ?? 'open';
  if (policy === 'open') return;
  throw new CniError(
    CNI_ERROR.UNSUPPORTED_FIELD,
    `Key "ingressPolicy" has the unsupported value "${policy}", use "open", or chain the reference firewall plugin`,
  );
}
