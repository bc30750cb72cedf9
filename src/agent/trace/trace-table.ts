import type { IpAddress } from '../../core/index.ts';
import {
  cmp,
  ct,
  type Expression,
  meta,
  type NftChange,
  type NftHook,
  networkOrder16,
  payload,
} from '../../netlink/nftables/index.ts';

/** The table of a live trace, in family inet. It belongs to the socket that made it, and vanishes with it. */
export const TRACE_TABLE = 'nodeplane-trace';

const TABLE = { family: 'inet', table: TRACE_TABLE } as const;
/** In the order of NF_INET_*. */
export const HOOKS: readonly NftHook[] = ['prerouting', 'input', 'forward', 'output', 'postrouting'];

/**
 * Where in a hook a packet is looked at. `early`: before all rules, raw ones at -300 included. `tracked`: right behind connection
 * tracking (-200), which in the other hooks has been there before. `late`: behind all rules, srcnat (100) included; without rules of
 * its own it tells how the packet looks by then, for a rule that translates tells only `accept`.
 */
const PRIORITIES = { early: -350, tracked: -199, late: 310 } as const;
export type Stage = keyof typeof PRIORITIES;

/** How many packets of a rule are traced: a trace tells how packets fare, and each costs the kernel a message per rule it meets. */
const LIMIT: Expression = { kind: 'limit', rate: 10, unit: 'second', burst: 20, of: 'packets' };
const ARM: readonly Expression[] = [
  LIMIT,
  { kind: 'immediate', to: 0, data: Uint8Array.of(1) },
  { kind: 'meta-set', key: 'nftrace', from: 0 },
];

/** Which packets are looked for. */
export interface TracedTuple {
  /** Undefined: from anywhere. */
  readonly source: IpAddress | undefined;
  readonly destination: IpAddress;
  readonly port: number;
  /** IPPROTO_*. */
  readonly protocol: number;
}

/** Chains that arm and show, in each hook: one transaction of a table that must not be there yet. Pure. */
export function traceTable(tuples: readonly TracedTuple[]): NftChange[] {
  const changes: NftChange[] = [
    { operation: 'create', object: { kind: 'table', family: 'inet', name: TRACE_TABLE, owned: true } },
  ];
  const addChain = (hook: NftHook, stage: Stage) => {
    const base = { type: 'filter', hook, priority: PRIORITIES[stage] } as const;
    changes.push({ operation: 'add', object: { kind: 'chain', ...TABLE, name: chainName(stage, hook), base } });
  };
  const addRules = (hook: NftHook, stage: Stage, match: (tuple: TracedTuple) => readonly Expression[]) => {
    for (const tuple of tuples) {
      const rule = { kind: 'rule', ...TABLE, chain: chainName(stage, hook) } as const;
      changes.push({ operation: 'add', object: { ...rule, expressions: [...match(tuple), ...ARM] } });
    }
  };
  for (const hook of HOOKS) {
    addChain(hook, 'early');
    if (hook === 'prerouting' || hook === 'output') {
      addRules(hook, 'early', headerMatch);
      // What is kept out of connection tracking has no connection to be known by.
      addRules(hook, 'early', answerMatch);
      addChain(hook, 'tracked');
      addRules(hook, 'tracked', connectionMatch);
    } else addRules(hook, 'early', connectionMatch);
    addChain(hook, 'late');
  }
  return changes;
}

function chainName(stage: Stage, hook: NftHook): string {
  return `${stage}-${hook}`;
}

/** What a chain's name says; undefined for chains of others. */
export function placeOf(table: string, chain: string): { readonly stage: Stage; readonly hook: NftHook } | undefined {
  if (table !== TRACE_TABLE) return undefined;
  const [stage, hook] = chain.split('-') as [Stage, NftHook];
  return { stage, hook };
}

const NFPROTO = { IPv4: 2, IPv6: 10 } as const;

/** As the packet looks: the way there, before any translation. */
function headerMatch({ source, destination, protocol, port }: TracedTuple): Expression[] {
  const { family } = destination;
  return [
    meta('nfproto'),
    cmp.equal(Uint8Array.of(NFPROTO[family])),
    ...(source ? [payload.saddr(family), cmp.equal(source.bytes)] : []),
    payload.daddr(family),
    cmp.equal(destination.bytes),
    meta('l4proto'),
    cmp.equal(Uint8Array.of(protocol)),
    payload.dport(),
    cmp.equal(networkOrder16(port)),
  ];
}

/** As the answer looks, where nobody translates it. */
function answerMatch({ source, destination, protocol, port }: TracedTuple): Expression[] {
  const { family } = destination;
  return [
    meta('nfproto'),
    cmp.equal(Uint8Array.of(NFPROTO[family])),
    payload.saddr(family),
    cmp.equal(destination.bytes),
    ...(source ? [payload.daddr(family), cmp.equal(source.bytes)] : []),
    meta('l4proto'),
    cmp.equal(Uint8Array.of(protocol)),
    payload.sport(),
    cmp.equal(networkOrder16(port)),
  ];
}

/** As the connection began: both ways, translated or not, and messages of ICMP about it, which conntrack relates to it. */
function connectionMatch({ source, destination, protocol, port }: TracedTuple): Expression[] {
  const { family } = destination;
  const [saddr, daddr] =
    family === 'IPv4' ? (['saddr-ip', 'daddr-ip'] as const) : (['saddr-ip6', 'daddr-ip6'] as const);
  return [
    meta('nfproto'),
    cmp.equal(Uint8Array.of(NFPROTO[family])),
    ct('protocol', 0, 'original'),
    cmp.equal(Uint8Array.of(protocol)),
    ...(source ? [ct(saddr, 0, 'original'), cmp.equal(source.bytes)] : []),
    ct(daddr, 0, 'original'),
    cmp.equal(destination.bytes),
    ct('proto-dst', 0, 'original'),
    cmp.equal(networkOrder16(port)),
  ];
}
