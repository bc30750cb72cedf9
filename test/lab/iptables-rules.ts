import type { IpFamily } from '../../src/core/index.ts';

/** The two programs behind the name `iptables`; both may hold rules at the same time. */
export type IptablesVariant = 'legacy' | 'nft';

/** One rule as `iptables-save -c` prints it. */
export interface CountedRule {
  readonly table: string;
  readonly chain: string;
  /** The rule without its counters: `-A KUBE-SERVICES -d …`. */
  readonly text: string;
  readonly packets: number;
  readonly bytes: number;
}

/** `iptables-legacy-save`, `ip6tables-nft-save` and so on. */
export function saveProgram(variant: IptablesVariant, family: IpFamily): string {
  return `${family === 'IPv6' ? 'ip6tables' : 'iptables'}-${variant}-save`;
}

/** Reads the rules and their counters from the output of `iptables-save -c`. */
export function parseCountedRules(saved: string): CountedRule[] {
  const rules: CountedRule[] = [];
  let table = '';
  for (const line of saved.split('\n')) {
    if (line.startsWith('*')) table = line.slice(1);
    const rule = /^\[(\d+):(\d+)\] (-A (\S+).*)$/.exec(line);
    if (rule) {
      const [, packets, bytes, text, chain] = rule;
      rules.push({ table, chain: chain!, text: text!, packets: Number(packets), bytes: Number(bytes) });
    }
  }
  return rules;
}
