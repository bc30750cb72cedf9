import { isOpened, packetsOf, type Refusal } from '../../cni/index.ts';
import { parseCidr } from '../../core/index.ts';
import type { Check } from '../check.ts';
import { podRanges } from '../facts/node-object.ts';
import { type RuleSet, readRuleSets } from '../facts/rule-sets.ts';
import { firstFew, ok, orUnread, warning } from '../finding.ts';
import { type FoundFirewall, firewallsAmong } from './firewalls.ts';

/** The bridge of pods, of nodeplane, flannel and most others. */
const BRIDGE = 'cni0';
/** Where nobody knows the ranges of pods: an address that no rule is about lets nothing through but what is let through for all. */
const OF_NOBODY = ['0.0.0.0/32', '::/128'].map(parseCidr);

export const forward: Check = {
  name: 'rules.forward',
  async look(world) {
    const { node, config } = world;
    const { sets, unread } = await readRuleSets(node);
    const { all } = await podRanges(world);
    const ranges = all.length > 0 ? all : OF_NOBODY;
    const refusals = node.refusals(ranges.flatMap((range) => packetsOf(range, { link: BRIDGE, isShared: true })));
    if (refusals.length === 0) return orUnread(ok('chain FORWARD lets pods through'), unread);
    const firewalls = firewallsAmong(sets, node.nftables().tables);
    const makers = refusals.map((refusal) => makerOf(refusal, sets, firewalls));
    const names = [...new Set(makers.flatMap((maker) => maker?.name ?? []))].join(' and ');
    const message = `what no rule accepts is not forwarded: ${placesOf(refusals)}${names && `, as ${names} leaves it`}`;
    const left = config.cni ? refusals.filter((one) => !isOpened(one)) : refusals;
    if (left.length === 0) return orUnread(ok(`${message}; the agent lets pods through`), unread);
    const remedies = left.map((refusal) => makers[refusals.indexOf(refusal)]?.remedy ?? remedyFor(refusal));
    const remedy = [...new Set(remedies)].join('; ');
    return config.cni
      ? warning(`${message}; the agent lets no pods through ${placesOf(left)}`, `let pods through there: ${remedy}`)
      : warning(message, `who makes the pods’ network has to let their packets through: ${remedy}`);
  },
};

/** Whose the chain is, as far as that is known; Docker has no commands for it. */
function makerOf(
  { owner, family, table }: Refusal,
  sets: readonly RuleSet[],
  firewalls: readonly FoundFirewall[],
): { readonly name: string; readonly remedy?: string } | undefined {
  if (owner === 'nftables') {
    return firewalls.find(({ where }) => typeof where === 'object' && where.family === family && where.name === table);
  }
  const isOfOwner = (variant: string) => owner === `iptables-${variant}`;
  const firewall = firewalls.find(({ where }) => typeof where === 'string' && isOfOwner(where));
  if (firewall) return firewall;
  const hasDocker = sets.some(({ variant, tables }) => isOfOwner(variant) && tables.get('filter')?.has('DOCKER'));
  return hasDocker ? { name: 'Docker' } : undefined;
}

function placesOf(refusals: readonly Refusal[]): string {
  return firstFew(
    refusals.map(({ owner, family, table, chain }) => {
      const whose =
        owner === 'nftables' ? `nftables table ${family} ${table}` : `${owner} ${family === 'ip6' ? 'IPv6' : 'IPv4'}`;
      return `${whose} (chain ${chain})`;
    }),
  );
}

/** What lets pods through where nobody is known whose chain it is, or he has no commands for it. */
function remedyFor({ owner, family, table, base }: Refusal): string {
  const ip = family === 'ip6' ? 'ip6' : 'ip';
  const commands =
    owner === 'nftables'
      ? ['saddr', 'daddr'].map((side) => `nft insert rule ${family} ${table} ${base} ${ip} ${side} <pod CIDR> accept`)
      : ['-s', '-d'].map((side) => `${owner.replace('ip', ip)} -I FORWARD ${side} <pod CIDR> -j ACCEPT`);
  return commands.join('; ');
}
