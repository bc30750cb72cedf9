import { atOnce, formatIp, type IpAddress, type IpFamily } from '../../src/core/index.ts';
import { parseSave } from '../../src/proxy/rules/index.ts';
import type { FakeIptables } from './fake-iptables.ts';

/** All rules of the variant nft by table and chain; without the built-in chains that have none. */
export function ruleDump(iptables: FakeIptables, family: IpFamily): Readonly<Record<string, readonly string[]>> {
  const dump: Record<string, readonly string[]> = {};
  for (const [table, chains] of atOnce(parseSave(iptables.dump(family, 'nft')))) {
    for (const [name, { builtIn, rules }] of chains) if (!builtIn || rules.length > 0) dump[`${table} ${name}`] = rules;
  }
  return dump;
}

/** Whether a rule is about one of these destination addresses. */
export function isToHost(rule: string, addresses: readonly IpAddress[]): boolean {
  return addresses.some((ip) => rule.includes(`-d ${formatIp(ip)}/${ip.family === 'IPv4' ? 32 : 128} `));
}
