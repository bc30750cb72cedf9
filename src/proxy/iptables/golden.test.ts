import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { completePlan } from '../../../test/samples/complete-plan.ts';
import { atOnce } from '../../core/index.ts';
import type { Plan } from '../index.ts';
import { emptyChainSet } from '../rules/index.ts';
import { JUMPS } from './fixed-chains.ts';
import { Layout } from './layout.ts';
import { planChanges } from './transaction.ts';

// The complete ruleset of a sample plan as readable files. After a wanted change: UPDATE_GOLDEN=1 npx vitest run golden

const FOLDER = join(dirname(fileURLToPath(import.meta.url)), '../../../test/golden/iptables');

function rulesetOf(plan: Plan): string {
  const layout = new Layout({ family: plan.family, node: plan.node, dropInvalid: true, accounting: false });
  for (const port of plan.ports.values()) atOnce(layout.upsert(port));
  const changes = atOnce(planChanges(emptyChainSet(), atOnce(layout.takeEdits())));
  const tables = changes.map(({ table, write }) => {
    const chains = [...write].sort(([a], [b]) => (a < b ? -1 : 1));
    const rules = chains.flatMap(([name, chain]) => ['', ...chain.rules.map((rule) => `-A ${name} ${rule}`)]);
    const jumps = JUMPS.filter((jump) => jump.table === table).map(({ chain, rule }) => `-I ${chain} ${rule}`);
    return [`*${table}`, ...chains.map(([name]) => `:${name}`), '', ...jumps, ...rules].join('\n');
  });
  return `${tables.join('\n\n')}\n`;
}

describe('the ruleset of a plan with everything', () => {
  it.each([
    ['complete-ipv4', completePlan('IPv4')],
    ['complete-ipv6', completePlan('IPv6')],
    [
      'masquerade-all-bridge',
      completePlan('IPv4', { masqueradeAll: true, localDetector: { kind: 'bridge', interfaceName: 'cni0' } }),
    ],
  ])('is test/golden/iptables/%s.rules', (name, plan) => {
    const path = join(FOLDER, `${name}.rules`);
    if (process.env.UPDATE_GOLDEN) {
      mkdirSync(FOLDER, { recursive: true });
      writeFileSync(path, rulesetOf(plan));
    }
    expect(rulesetOf(plan)).toBe(readFileSync(path, 'utf8'));
  });
});
