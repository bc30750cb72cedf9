import type { IpFamily } from '../../../core/index.ts';
import type { Exec } from '../../../sys/index.ts';

/** A rule that counted packets while a trace ran: all there is to tell where packets cannot be followed. */
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

/** What the save program prints, at one moment. */
export interface LegacyTables {
  /** How many packets met a rule, or a policy that drops, by `table\nrule`. Two rules that are the same word by word count as one. */
  readonly counters: ReadonlyMap<string, number>;
  /** By `table chain`, in their order. */
  readonly chains: ReadonlyMap<string, SavedLegacyChain>;
}

export interface SavedLegacyChain {
  /** `ACCEPT`, `DROP`; `-`: one that rules jump to. */
  readonly policy: string;
  /** `-A FORWARD -d 10.0.0.1/32 -j DROP` */
  readonly rules: readonly string[];
}

/** The tables now. Undefined: no such program, or it could not read. */
export async function readLegacy(exec: Exec, family: IpFamily): Promise<LegacyTables | undefined> {
  try {
    const { status, stdout } = await exec(PROGRAMS[family], ['-c'], { timeoutMs: SAVE_TIMEOUT_MS });
    return status === 0 ? parseTables(stdout) : undefined;
  } catch {
    return undefined;
  }
}

/** Whether a rule or policy keeps packets from their destination. Pure. */
export function endsWay(rule: string): boolean {
  return ENDS.test(rule);
}

/** The rules and policies that drop or refuse and counted packets in between. Pure. */
export function legacyDrops(before: LegacyTables | undefined, after: LegacyTables | undefined): CountedLegacyRule[] {
  if (!before || !after) return [];
  return [...after.counters].flatMap(([key, count]) => {
    const packets = count - (before.counters.get(key) ?? 0);
    const [table = '', rule = ''] = key.split('\n');
    return packets > 0 && endsWay(rule) ? [{ table, rule, packets }] : [];
  });
}

/** Of what `iptables-save -c` prints. Pure. */
export function parseTables(text: string): LegacyTables {
  const counters = new Map<string, number>();
  const chains = new Map<string, { policy: string; rules: string[] }>();
  let table = '';
  const count = (rule: string, packets: number) => {
    const key = `${table}\n${rule}`;
    counters.set(key, (counters.get(key) ?? 0) + packets);
  };
  for (const line of text.split('\n')) {
    if (line.startsWith('*')) table = line.slice(1);
    const [, name, policy = '', met] = /^:(\S+) (\S+) \[(\d+):\d+\]$/.exec(line) ?? [];
    if (name !== undefined) {
      chains.set(`${table} ${name}`, { policy, rules: [] });
      if (policy === 'DROP') count(`-P ${name} -j ${policy}`, Number(met));
    }
    const [, packets, rule = '', chain] = /^\[(\d+):\d+\] (-A (\S+).*)$/.exec(line) ?? [];
    if (chain !== undefined) {
      chains.get(`${table} ${chain}`)?.rules.push(rule);
      count(rule, Number(packets));
    }
  }
  return { counters, chains };
}
