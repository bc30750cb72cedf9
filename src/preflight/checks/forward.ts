import { type Cidr, cidrContains, tryParseCidr } from '../../core/index.ts';
import { type ForAll, refusingChain } from '../../nft/index.ts';
import type { Check, World } from '../check.ts';
import { podRanges } from '../facts/node-object.ts';
import { chainsOf, placeOf, type RuleSet, readRuleSets } from '../facts/rule-sets.ts';
import { firstFew, ok, orUnread, warning } from '../finding.ts';
import { FIREWALLS } from './firewalls.ts';

type Hook = 'forward' | 'input';

/** A chain at hook forward that lets nothing by that no rule accepts. */
interface ClosedChain {
  /** In words. */
  readonly place: string;
  /** Whether the agent lets pods through: in the chain that iptables-nft has, unless a firewall refuses the rest by a chain of its own. */
  readonly isOpened: boolean;
  /** What lets them through where no firewall that is known made it. */
  readonly remedy: string;
}

export const forward: Check = {
  name: 'rules.forward',
  async look(world) {
    const { node, config } = world;
    const { sets, unread } = await readRuleSets(node);
    const closed = [...closedInNft(node, sets), ...closedInLegacy(sets, (await podRanges(world)).all)];
    if (closed.length === 0) return ok('chain FORWARD accepts what no rule decides');
    const chains = sets.flatMap((set) => [...chainsOf(set)]);
    const firewall = FIREWALLS.find(({ chain }) => chains.some(({ name }) => chain.test(name)));
    const by = firewall?.name ?? (chains.some(({ name }) => name === 'DOCKER') ? 'Docker' : undefined);
    const places = (some: readonly ClosedChain[]) => firstFew(some.map(({ place }) => place));
    const message = `what no rule accepts is not forwarded (${places(closed)})${by ? `, as ${by} leaves it` : ''}`;
    const left = config.cni ? closed.filter(({ isOpened }) => !isOpened) : closed;
    if (left.length === 0) return orUnread(ok(`${message}; the agent lets pods through`), unread);
    const remedy = firewall?.remedy ?? [...new Set(left.map((one) => one.remedy))].join('; ');
    return config.cni
      ? warning(`${message}; the agent lets no pods through ${places(left)}`, `let pods through there: ${remedy}`)
      : warning(message, `who makes the pods’ network has to let their packets through: ${remedy}`);
  },
};

/** Chains at a hook whose policy is to drop, in words. */
export async function droppingChains(node: World['node'], hook: Hook): Promise<string[]> {
  const { sets } = await readRuleSets(node);
  return [
    ...droppingInNft(node, hook).map(({ place }) => place),
    ...droppingInLegacy(sets, hook).map(legacyPlace(hook)),
  ];
}

/** Tables of iptables-nft are nf_tables too, and among them. */
function droppingInNft(node: World['node'], hook: Hook) {
  return node
    .nftables()
    .chains.filter(({ base }) => base?.type === 'filter' && base.hook === hook && base.policy === 'drop')
    .map((chain) => ({ ...chain, place: `nftables table ${chain.family} ${chain.table}, chain ${chain.name}` }));
}

function droppingInLegacy(sets: readonly RuleSet[], hook: Hook): RuleSet[] {
  return sets.filter(
    ({ variant, tables }) => variant === 'legacy' && tables.get('filter')?.get(hook.toUpperCase())?.policy === 'DROP',
  );
}

const legacyPlace =
  (hook: Hook) =>
  ({ family }: RuleSet) =>
    `iptables-legacy ${family}, chain ${hook.toUpperCase()}`;

function closedInNft(node: World['node'], sets: readonly RuleSet[]): ClosedChain[] {
  const refusals = sets.flatMap((set) => {
    const refusal = set.variant === 'nft' ? refusalIn(set) : undefined;
    return refusal === undefined ? [] : [{ set, refusal, family: set.family === 'IPv4' ? 'ip' : 'ip6' }];
  });
  const refusing = refusals.map(
    ({ set, refusal }): ClosedChain => ({
      place: placeOf({ set, table: 'filter', name: refusal }),
      isOpened: refusal === 'FORWARD',
      remedy: 'iptables -I FORWARD -s <pod CIDR> -j ACCEPT, and -d',
    }),
  );
  const dropping = droppingInNft(node, 'forward').map(({ family, table, name, place }): ClosedChain => {
    const isOfIptables = (family === 'ip' || family === 'ip6') && table === 'filter' && name === 'FORWARD';
    return {
      place,
      isOpened: isOfIptables,
      remedy: isOfIptables
        ? 'iptables -I FORWARD -s <pod CIDR> -j ACCEPT, and -d'
        : `nft insert rule ${family} ${table} ${name} ${family === 'ip6' ? 'ip6' : 'ip'} saddr <pod CIDR> accept, and daddr`,
    };
  });
  return [...dropping, ...refusing];
}

/** By its policy or a rule, and not opened for all pods by rules before. */
function closedInLegacy(sets: readonly RuleSet[], pods: readonly Cidr[]): ClosedChain[] {
  const isClosed = (set: RuleSet) => {
    const ofFamily = pods.filter(({ address }) => address.family === set.family);
    const packets = ofFamily.flatMap((range) => [
      { flags: ['-s', '-i'] as const, range },
      { flags: ['-d', '-o'] as const, range },
    ]);
    return packets.length === 0
      ? refusalIn(set) !== undefined
      : packets.some((one) => refusalIn(set, one) !== undefined);
  };
  return sets
    .filter((set) => set.variant === 'legacy' && isClosed(set))
    .map((set) => ({
      place: legacyPlace('forward')(set),
      isOpened: false,
      remedy: 'iptables-legacy -I FORWARD -s <pod CIDR> -j ACCEPT, and -d',
    }));
}

/** What pods of a range send, or get. */
interface PodPackets {
  /** By which a rule asks for their address, and for their bridge. */
  readonly flags: readonly [address: string, link: string];
  readonly range: Cidr;
}

/** What bridges of pods are called. */
const BRIDGE = /^(?:cni|cbr)(?:\d|\+$)/;

const COMMENT = /-m comment --comment (?:"(?:[^"\\]|\\.)*"|\S+) ?/g;
/** A rule for every packet, or for all of an address or an interface, and where it leads. */
const RULE = /^(?:(-[sdio]) (\S+) )?-([jg]) (\S+)(?: --reject-with \S+)?$/;

/**
 * The chain in which chain FORWARD refuses whatever none of its rules has accepted: itself, or one it leads every packet to. Of legacy
 * iptables by its policy as well; that of iptables-nft is a chain of nf_tables like others.
 */
function refusalIn({ variant, tables }: RuleSet, packets?: PodPackets): string | undefined {
  const chains = tables.get('filter');
  return refusingChain('FORWARD', (name) => {
    const chain = chains?.get(name);
    const rules = (chain?.rules ?? []).map((rule) => forAll(rule, packets));
    return variant === 'legacy' && chain?.policy === 'DROP' ? [...rules, { kind: 'refuse' }] : rules;
  });
}

function forAll(rule: string, packets: PodPackets | undefined): ForAll | undefined {
  const [, flag, value, way, target] = RULE.exec(rule.replaceAll(COMMENT, '')) ?? [];
  if (target === undefined || (flag !== undefined && !isOfAll(flag, value!, packets))) return undefined;
  if (target === 'DROP' || target === 'REJECT') return { kind: 'refuse' };
  if (target === 'ACCEPT' || target === 'RETURN') return { kind: target === 'ACCEPT' ? 'accept' : 'return' };
  return { kind: way === 'g' ? 'goto' : 'jump', chain: target };
}

function isOfAll(flag: string, value: string, packets: PodPackets | undefined): boolean {
  if (!packets?.flags.includes(flag)) return false;
  if (flag === packets.flags[1]) return BRIDGE.test(value);
  const cidr = tryParseCidr(value);
  const { range } = packets;
  return cidr !== undefined && cidr.prefixLength <= range.prefixLength && cidrContains(cidr, range.address);
}
