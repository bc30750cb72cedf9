import type { IpFamily } from '../../core/index.ts';
import type { Exec } from '../../sys/index.ts';

/** Legacy x_tables tell nobody what they do with a packet: what they count is all there is. */
export interface CountedLegacyRule {
  readonly table: string;
  /** As the save program prints it: `-A FORWARD -d 10.0.0.1/32 -j DROP`. */
  readonly rule: string;
  /** How many packets met it meanwhile, anybody's. */
  readonly packets: number;
}

const PROGRAMS: Readonly<Record<IpFamily, string>> = { IPv4: 'iptables-legacy-save', IPv6: 'ip6tables-legacy-save' };
/** Verdicts that keep a packet from its destination. */
const ENDS = /(?: -j (?:DROP|REJECT|TARPIT)\b)/;
const SAVE_TIMEOUT_MS = 10_000;

/** Counters by table and rule; undefined when there are none to read. */
export type LegacyCounters = ReadonlyMap<string, number> | undefined;

/** The rules' counters now. Undefined: no such program, or it could not read. */
export async function readLegacy(exec: Exec, family: IpFamily): Promise<LegacyCounters> {
  try {
    const { status, stdout } = await exec(PROGRAMS[family], ['-c'], { timeoutMs: SAVE_TIMEOUT_MS });
    return status === 0 ? parseCounters(stdout) : undefined;
  } catch {
    return undefined;
  }
}

/** The rules and policies that drop or refuse and counted packets in between. Pure. */
export function legacyDrops(before: LegacyCounters, after: LegacyCounters): CountedLegacyRule[] {
  if (!before || !after) return [];
  return [...after].flatMap(([key, count]) => {
    const packets = count - (before.get(key) ?? 0);
    const [table = '', rule = ''] = key.split('\n');
    return packets > 0 && ENDS.test(rule) ? [{ table, rule, packets }] : [];
  });
}

/** Of what `iptables-save -c` prints. Two rules that are the same word by word count as one. Pure. */
export function parseCounters(text: string): ReadonlyMap<string, number> {
  const counters = new Map<string, number>();
  let table = '';
  for (const line of text.split('\n')) {
    if (line.startsWith('*')) table = line.slice(1);
    const rule = /^\[(\d+):\d+\] (-A .*)$/.exec(line);
    const policy = /^:(\S+) (DROP) \[(\d+):\d+\]$/.exec(line);
    const found = rule
      ? ([rule[2]!, Number(rule[1])] as const)
      : policy && ([`-P ${policy[1]} -j ${policy[2]}`, Number(policy[3])] as const);
    if (!found) continue;
    const key = `${table}\n${found[0]}`;
    counters.set(key, (counters.get(key) ?? 0) + found[1]);
  }
  return counters;
}
