import { type LoggedPacket, watchLog } from '../../../netlink/log/index.ts';
import type { NftHook } from '../../../netlink/nftables/index.ts';
import { readIpPacket, type TracedPacket } from '../read-packet.ts';
import { HOOKS } from '../trace-table.ts';
import { isOf, type TracedFlow } from '../traced-flow.ts';
import { endsWay, type LegacyTables } from './saved-tables.ts';

/** Where the kernel logs what is traced. */
const GROUP = 0;
/** Steps kept: a trace is for people. */
const MOST_STEPS = 1000;

/** What a packet met in legacy iptables: a rule that matches, the end of a chain, or a policy. */
export interface LegacyStep {
  readonly hook: NftHook;
  readonly table: string;
  readonly chain: string;
  readonly type: 'rule' | 'return' | 'policy';
  /** From 1 on. */
  readonly number: number;
  /** As it was there. */
  readonly packet: TracedPacket;
}

/** The place that ended the way of a packet. */
export interface LegacyDrop extends Pick<LegacyStep, 'table' | 'chain'> {
  /** Its number in the chain; null: the policy. */
  readonly rule: number | null;
  /** As the save program prints it; null: rules were changed meanwhile. */
  readonly text: string | null;
}

/**
 * Follows traced packets through legacy iptables, until `close`. The flag that `meta nftrace set 1` gives a packet is the one of
 * -j TRACE: no rule is needed there (trace_packet, net/ipv4/netfilter/ip_tables.c).
 *
 * @param missed called when the kernel told more than was read
 * @throws as `watchLog`
 */
export function watchLegacySteps(missed: () => void): {
  readonly steps: readonly LegacyStep[];
  catchUp(): void;
  close(): void;
} {
  const steps: LegacyStep[] = [];
  const watch = watchLog(GROUP, (logged) => {
    if (logged === 'lost') return missed();
    const step = readStep(logged);
    if (step) steps.push(step);
    if (steps.length > MOST_STEPS) steps.shift();
  });
  return { steps, catchUp: watch.catchUp, close: watch.close };
}

/** Undefined: it was logged for another reason. Pure. */
export function readStep({ prefix, hook: number, bytes }: LoggedPacket): LegacyStep | undefined {
  const [, table, chain, type, rule] = /^TRACE: ([^:]+):(.+):(rule|return|policy):(\d+) ?$/.exec(prefix) ?? [];
  const hook = HOOKS[number];
  const packet = readIpPacket(bytes);
  if (table === undefined || chain === undefined || hook === undefined || !packet) return undefined;
  return { hook, table, chain, type: type as LegacyStep['type'], number: Number(rule), packet };
}

/**
 * What took a packet that is lost in a hook; undefined: it was not legacy iptables, as far as was seen. Pure.
 *
 * @param before the tables when the trace began, and when it was over: a number means something only if both have the same there
 */
export function legacyDropOf(
  flow: TracedFlow,
  direction: 'there' | 'back',
  steps: readonly LegacyStep[],
  [before, after]: readonly [LegacyTables | undefined, LegacyTables | undefined],
): LegacyDrop | undefined {
  const { last } = flow[direction];
  if (!last || last.late) return undefined;
  const step = steps.findLast((one) => one.hook === last.hook && isOf(flow, direction, one.packet));
  if (!step || step.type === 'return') return undefined;
  const text = textOf(step, before);
  const isSame = text !== undefined && text === textOf(step, after);
  // The last one of the hook that let it pass was followed by somebody else.
  if (isSame && !endsWay(text)) return undefined;
  const { table, chain, type, number } = step;
  return { table, chain, rule: type === 'policy' ? null : number, text: isSame ? text : null };
}

function textOf({ table, chain, type, number }: LegacyStep, tables: LegacyTables | undefined): string | undefined {
  const saved = tables?.chains.get(`${table} ${chain}`);
  return type === 'policy' ? saved && `-P ${chain} -j ${saved.policy}` : saved?.rules[number - 1];
}
