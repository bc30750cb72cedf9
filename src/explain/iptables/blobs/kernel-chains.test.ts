import { readFileSync } from 'node:fs';
import { gunzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { comparable } from '../../../../test/samples/comparable-rule.ts';
import { atOnce } from '../../../core/index.ts';
import { parseSave } from '../../../proxy/rules/index.ts';
import { LegacyTable } from '../../../sys/index.ts';
import { parseRule } from '../parse-rule.ts';
import { KernelChains } from './kernel-chains.ts';

/** See test/golden/xtables/README.md. */
interface Captured {
  readonly sets: readonly string[];
  readonly printed: readonly string[];
  readonly tables: Readonly<Record<string, { readonly info: string; readonly entries: string }>>;
}

describe.each(['IPv4', 'IPv6'] as const)('a table of %s', (family) => {
  const file = new URL(`../../../../test/golden/xtables/${family.toLowerCase()}.json`, import.meta.url);
  const { sets, printed, tables } = JSON.parse(readFileSync(file, 'utf8')) as Captured;
  const saved = atOnce(parseSave(printed.join('\n')));
  const context = { family, setName: (index: number) => sets[index] };
  const base64 = (text: string) => Buffer.from(text, 'base64');
  const read = (name: string, cut = 0) => {
    const { info, entries } = tables[name]!;
    const bytes = gunzipSync(base64(entries));
    const table = new LegacyTable(family, base64(info), bytes.subarray(0, bytes.length - cut));
    return new KernelChains(table, context, (chain) => {
      throw new Error(`${chain} should be printed`);
    });
  };

  it.each(Object.keys(tables))('%s has the chains and rules that are printed of it', (name) => {
    const chains = read(name);
    // Those that others jump to come behind them.
    const names = [...saved.get(name)!].sort(([, a], [, b]) => Number(b.builtIn) - Number(a.builtIn));
    for (const [chain] of names) chains.get(chain);
    for (const [chain, { rules, ...rest }] of names) {
      const found = chains.get(chain);
      const own = found?.rules.map((rule) => typeof rule !== 'string' && comparable(rule));
      expect({ chain, ...found, rules: own }).toEqual({
        chain,
        ...rest,
        rules: rules.map((rule) => comparable(parseRule(rule))),
      });
    }
  });

  it('is read as far as it goes when it is cut short, and has no chain nobody has come to', () => {
    const chains = read('filter', 300);
    expect(chains.get('MATCHES')).toBeUndefined();
    expect(chains.get('FORWARD')?.rules.length).toBeGreaterThan(3);
    expect(chains.get('NONE')).toBeUndefined();
  });
});
