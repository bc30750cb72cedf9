import { release } from 'node:os';
import { errorText, type IpFamily, isShortage, isUnsupported, KernelError } from '../../core/index.ts';
import {
  type Expression,
  lookup,
  type NftChange,
  type NftRuleset,
  type NftSet,
  nftFamily,
  setMarkBits,
} from '../../netlink/nftables/index.ts';
import { addressRegisters, isDestinationTranslated, isLocalAddress, isNew } from '../../nft/index.ts';
import { stickyChain } from './compile/balance.ts';
import { rejectRules } from './compile/fixed-chains.ts';
import { SETS } from './compile/names.ts';
import { anyOf, dnatByMap, loadVip } from './compile/rule.ts';
import { fixedSets, placeSet, type SetBody, stickySets } from './compile/schema.ts';

/** What a rule of ours may need of the kernel, by the names of its modules and options. */
interface Feature {
  readonly needs: string;
  readonly sets?: Readonly<Record<string, SetBody>>;
  readonly rules?: readonly (readonly Expression[])[];
}

/**
 * Says what this machine lacks for Services as nf_tables rules; undefined when nothing. A table is made for it and removed
 * in the same transaction, so that nothing of it is ever in force.
 *
 * @param open opens the conversation with the kernel; it is closed again
 */
export function checkNftables(open: () => NftRuleset, family: IpFamily): string | undefined {
  const kernel = `Linux ${release()}`;
  let nft: NftRuleset;
  try {
    nft = open();
  } catch (error) {
    const reason = isShortage(error) ? 'cannot be asked about nf_tables' : 'has no nf_tables';
    return `${kernel} ${reason}: ${errorText(error)}`;
  }
  try {
    const features = featuresOf(family);
    const failure = tryOut(nft, family, features);
    if (failure === undefined) return undefined;
    if (failure instanceof KernelError && failure.errnoName === 'EPERM') {
      return 'CAP_NET_ADMIN is missing: run as root or grant the capability';
    }
    const missing = features.filter((feature) => tryOut(nft, family, [feature]) !== undefined);
    const names = missing.map(({ needs }) => needs).join(', ');
    const what = missing.length === 0 || missing.length === features.length ? 'nf_tables as Services need it' : names;
    return `${kernel} lacks ${what} for ${family}; Linux 5.13 or newer with its nf_tables modules has it (${errorText(failure)})`;
  } catch (error) {
    const reason = isUnsupported(error) ? 'has no nf_tables' : 'does not answer about nf_tables';
    return `${kernel} ${reason}: ${errorText(error)}`;
  } finally {
    nft.close();
  }
}

/** Tables in which features are tried out: of this name and a process's number. They are never there longer than a transaction. */
const PROBE_TABLE = 'nodeplane-probe-';

/** Whether a table is one of `checkNftables`, of whatever process: nobody's rules, and gone already. */
export function isProbeTable(name: string): boolean {
  return name.startsWith(PROBE_TABLE);
}

/** What the kernel says against some features; undefined when it accepts them. */
function tryOut(nft: NftRuleset, family: IpFamily, features: readonly Feature[]): unknown {
  const name = `${PROBE_TABLE}${process.pid}`;
  const inTable = { family: nftFamily(family), table: name } as const;
  const table = { kind: 'table', family: inTable.family, name } as const;
  const sets = new Map(features.flatMap((feature) => Object.entries(feature.sets ?? {})));
  const changes: NftChange[] = [
    { operation: 'create', object: table },
    ...[...sets].map(([set, body]) => create(placeSet(family, name, set, body))),
    { operation: 'create', object: { kind: 'chain', ...inTable, name: 'probe' } },
    ...features
      .flatMap(({ rules = [] }) => rules)
      .map((expressions): NftChange => {
        return { operation: 'add', object: { kind: 'rule', ...inTable, chain: 'probe', expressions } };
      }),
    { operation: 'delete', object: table },
  ];
  try {
    nft.commit(changes);
    return undefined;
  } catch (error) {
    return error;
  }
}

function create(object: NftSet): NftChange {
  return { operation: 'create', object };
}

function featuresOf(family: IpFamily): Feature[] {
  const sets = fixedSets(family);
  const only = (...names: (keyof typeof sets)[]) => Object.fromEntries(names.map((name) => [name, sets[name]]));
  const maps = { endpoints: 'probe-endpoints', choices: 'probe-choices', affinity: 'probe-affinity' };
  const slot = addressRegisters(family) + 2;
  return [
    { needs: 'maps with concatenated keys', sets: only(SETS.services, SETS.endpoints) },
    { needs: 'sets of ranges with concatenated keys', sets: only(SETS.allowedSources) },
    { needs: 'nft_ct', rules: [isNew(), isDestinationTranslated()] },
    { needs: `nft_fib_${family.toLowerCase()}`, rules: [isLocalAddress('daddr')] },
    { needs: 'changes of the mark', rules: [setMarkBits(0x4000)] },
    {
      needs: 'verdict maps',
      sets: only(SETS.services),
      rules: [[...loadVip(family), lookup(SETS.services, { to: 'verdict' })]],
    },
    {
      needs: 'nft_nat with nft_numgen',
      sets: only(SETS.endpoints),
      rules: [[...loadVip(family), anyOf(2, slot), ...dnatByMap(family, SETS.endpoints)]],
    },
    { needs: 'nft_masq', rules: [[{ kind: 'masquerade', flags: ['random-fully'] }]] },
    { needs: 'nft_reject', rules: rejectRules(family).map(({ expressions }) => expressions) },
    {
      needs: 'maps that rules write',
      sets: Object.fromEntries(stickySets(family, maps, { affinitySeconds: 1 })),
      rules: stickyChain(family, 'TCP', maps, 2).rules.map(({ expressions }) => expressions),
    },
  ];
}
