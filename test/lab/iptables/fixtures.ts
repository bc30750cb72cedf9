import { join } from 'node:path';
import type { IpFamily } from '../../../src/core/index.ts';
import { type IptablesVariant, iptablesTool } from '../../../src/proxy/rules/index.ts';
import { type Exec, exec } from '../../../src/sys/index.ts';
import { inputText } from '../../fakes/exec-input.ts';
import { createFolder, own, type TestNamespace } from '../namespace.ts';

/** Every family with every variant of iptables. */
export const CASES: readonly (readonly [IpFamily, IptablesVariant])[] = [
  ['IPv4', 'legacy'],
  ['IPv4', 'nft'],
  ['IPv6', 'legacy'],
  ['IPv6', 'nft'],
];

/** The lock of iptables is a file shared by the whole machine: the tests neither wait for others nor leave it behind. */
export function useOwnLockFile(): void {
  process.env.XTABLES_LOCKFILE = join(createFolder('xtables').path, 'lock');
  own(() => delete process.env.XTABLES_LOCKFILE);
}

/** Runs programs inside a namespace; nsenter starts faster than `ip netns exec`, which mounts a new /sys. */
export function execIn(namespace: TestNamespace): Exec {
  return (program, args, options) => exec('nsenter', [`--net=${namespace.path}`, program, ...args], options);
}

/** An Exec that counts, and remembers what it gave to iptables-restore. */
export function recordingExec(inner: Exec): { exec: Exec; restores: string[]; calls: string[] } {
  const restores: string[] = [];
  const calls: string[] = [];
  return {
    restores,
    calls,
    exec(program, args, options) {
      calls.push(program);
      if (!program.endsWith('-restore')) return inner(program, args, options);
      const input = inputText(options);
      restores.push(input);
      return inner(program, args, { ...options, input });
    },
  };
}

/** What iptables-save prints for tables filter and nat: `table chain` -> rules, without counters and remarks. */
export async function saved(
  exec: Exec,
  family: IpFamily,
  variant: IptablesVariant,
): Promise<Record<string, readonly string[]>> {
  const tool = iptablesTool(family, variant, exec);
  const chains: Record<string, readonly string[]> = {};
  for (const table of ['filter', 'nat']) {
    for (const [name, { rules }] of await tool.save(table)) chains[`${table} ${name}`] = rules;
  }
  return chains;
}
