import { describe, expect, it } from 'vitest';
import { RULE_FORMS } from '../../../../test/fakes/nftables-forms.ts';
import { intervalElements } from '../../../../test/fakes/nftables-intervals.ts';
import { changesText, tableText } from '../../../../test/fakes/nftables-text.ts';
import { hostOrder32, lookup, meta, networkOrder16, payload, random } from '../expression/expressions.ts';
import type { NftChange, NftFamily, NftSet } from '../object/model.ts';
import { KnownSets } from './change-text.ts';
import { priorityText } from './object-text.ts';
import { ruleText } from './rule-text.ts';
import { rangeText, timeText, valueText } from './value-text.ts';

const T = { family: 'ip', table: 't' } as const;
const bytes = (...values: number[]) => Uint8Array.from(values);
const set = (name: string, rest: Pick<NftSet, 'key' | 'data' | 'flags' | 'comment'>): NftSet => ({
  kind: 'set',
  ...T,
  name,
  ...rest,
});
const ENDPOINTS = set('endpoints', {
  key: ['ipv4_addr', 'inet_proto', 'inet_service', 'mark'],
  data: ['ipv4_addr', 'inet_service'],
});
const AFFINITY = set('affinity', { key: ['ipv4_addr', 'inet_service'], data: ['mark'] });
const KEY = bytes(10, 96, 0, 1, 6, 0, 0, 0, 0, 80, 0, 0);

describe('a rule as text', () => {
  it.each(RULE_FORMS)('is what nft prints: $text', ({ family = 'ip', text, listed = text, expressions }) => {
    expect(ruleText(expressions, family, (name) => (name === AFFINITY.name ? AFFINITY : undefined))).toBe(listed);
  });

  it('tells keys and values by the types of sets', () => {
    const choices = set('choices', { key: ['mark'], data: ['inet_proto', 'ipv4_addr', 'inet_service'] });
    const sticky = set('sticky', { key: ['ipv4_addr'], data: ['ipv4_addr', 'inet_service'] });
    const sets = new Map([choices, sticky].map((each) => [each.name, each]));
    // As nft, which does not see what the look-up puts behind its first register.
    const expressions = [
      random(3, 1),
      payload.daddr('IPv4', 2),
      lookup('choices', { from: 1, to: 0 }),
      payload.saddr('IPv4', 4),
      { kind: 'dynset', operation: 'update', set: 'sticky', key: 4, data: 1, timeoutMs: 60_000 } as const,
    ];
    expect(ruleText(expressions, 'ip', (name) => sets.get(name))).toBe(
      'update @sticky { ip saddr timeout 1m : numgen random mod 3 . ip daddr }',
    );
    const dnat = { kind: 'nat', type: 'dnat', family: 'ip', address: 0, port: 1 } as const;
    const balance = [payload.daddr('IPv4'), meta('l4proto', 1), payload.dport(2), random(3, 3)];
    expect(ruleText([...balance, lookup('endpoints', { to: 0 }), dnat], 'ip')).toBe(
      'dnat ip to ip daddr . meta l4proto . th dport . numgen random mod 3 map @endpoints',
    );
  });

  it('names what nft has no text for, and registers that nobody loaded', () => {
    expect(
      ruleText(
        [
          { kind: 'unknown', name: 'osf', data: bytes(1, 255) },
          { kind: 'match', name: 'comment', revision: 0, info: bytes(0) },
          { kind: 'target', name: 'DNAT', revision: 2, info: bytes(0) },
          { kind: 'payload', base: 'network', offset: 8, length: 1, to: 0 },
          { kind: 'cmp', from: 0, op: '==', data: bytes(64) },
          { kind: 'cmp', from: 9, op: '<', data: bytes(7) },
        ],
        'ip',
      ),
    ).toBe('[osf 0x01ff] xt match "comment" xt target "DNAT" @nh,64,8 0x40 [register 9] < 0x07');
  });
});

describe('a transaction as text', () => {
  it('is a script for nft', () => {
    const spans = set('spans', { key: ['ipv4_addr'], flags: ['interval'] });
    const changes: NftChange[] = [
      { operation: 'create', object: { kind: 'table', family: 'ip', name: 't', comment: 'ours' } },
      { operation: 'add', object: ENDPOINTS },
      { operation: 'add', object: spans },
      {
        operation: 'add',
        object: {
          kind: 'chain',
          ...T,
          name: 'pre',
          base: { type: 'nat', hook: 'prerouting', priority: -100 },
          comment: 'first',
        },
      },
      {
        operation: 'add',
        object: {
          kind: 'elements',
          ...T,
          set: 'endpoints',
          elements: [
            {
              key: Buffer.concat([KEY, hostOrder32(2)]),
              data: bytes(10, 1, 0, 1, ...networkOrder16(8080), 0, 0),
              comment: 'web',
            },
          ],
        },
      },
      {
        operation: 'add',
        object: {
          kind: 'elements',
          ...T,
          set: 'spans',
          elements: intervalElements([{ first: bytes(10, 0, 0, 0), last: bytes(10, 0, 0, 255) }]),
        },
      },
      {
        operation: 'delete',
        object: { kind: 'elements', ...T, set: 'other', elements: [{ key: bytes(10, 0, 0, 1), data: bytes(1) }] },
      },
      { operation: 'delete', object: { kind: 'rule', ...T, chain: 'pre', handle: 7 } },
      { operation: 'flush', object: { kind: 'set', ...T, name: 'endpoints' } },
      { operation: 'destroy', object: { kind: 'chain', ...T, name: 'old' } },
    ];
    expect(changesText(changes)).toBe(`create table ip t { comment "ours"; }
add map ip t endpoints { type ipv4_addr . inet_proto . inet_service . mark : ipv4_addr . inet_service; }
add set ip t spans { type ipv4_addr; flags interval; }
add chain ip t pre { type nat hook prerouting priority dstnat; policy accept; comment "first"; }
add element ip t endpoints { 10.96.0.1 . tcp . 80 . 0x00000002 comment "web" : 10.1.0.1 . 8080 }
add element ip t spans { 10.0.0.0/24 }
delete element ip t other { 0x0a000001 }
delete rule ip t pre handle 7
flush map ip t endpoints
destroy chain ip t old
`);
    const known = new KnownSets();
    known.note(set('other', { key: ['ipv4_addr'] }));
    expect(changesText(changes.slice(6, 7), known)).toBe('delete element ip t other { 10.0.0.1 }\n');
  });
});

it('prints a table as nft lists it', () => {
  expect(
    tableText({
      table: { kind: 'table', family: 'ip', name: 't', comment: 'ours' },
      counters: [{ kind: 'counter', ...T, name: 'hits' }],
      sets: [set('links', { key: ['ifname'], comment: 'of pods' })],
      elements: new Map([['links', [{ key: Buffer.from('b'.padEnd(16, '\0')) }, { key: Buffer.alloc(16, 'a\0') }]]]),
      chains: [
        { kind: 'chain', ...T, name: 'in', base: { type: 'filter', hook: 'input', priority: -5, policy: 'drop' } },
        { kind: 'chain', ...T, name: 'target' },
      ],
      rules: new Map([['in', [{ kind: 'rule', ...T, chain: 'in', expressions: [], comment: 'nothing' }]]]),
    }),
  ).toBe(`table ip t {
	comment "ours"
	counter hits {
		packets 0 bytes 0
	}

	set links {
		type ifname
		comment "of pods"
		elements = {
			"a",
			"b" }
	}

	chain in {
		type filter hook input priority filter - 5; policy drop;
		comment "nothing"
	}

	chain target {
	}
}
`);
});

it.each([
  [-110, 'prerouting', 'ip', 'dstnat - 10'],
  [-110, 'output', 'ip', '-110'],
  [101, 'postrouting', 'inet', 'srcnat + 1'],
  [-300, 'prerouting', 'bridge', 'dstnat'],
  [-300, 'prerouting', 'inet', 'raw'],
] as const)('calls priority %i of %s in %s %s', (priority, hook, family: NftFamily, text) => {
  expect(priorityText(priority, hook, family)).toBe(text);
});

it('prints values, ranges and times', () => {
  expect(valueText('ether_addr', bytes(2, 0, 0, 0, 0, 255))).toBe('02:00:00:00:00:ff');
  expect(valueText('ipv4_addr', bytes(1))).toBe('0x01');
  expect(rangeText('ipv4_addr', bytes(10, 0, 0, 1), bytes(10, 0, 0, 2))).toBe('10.0.0.1-10.0.0.2');
  expect(rangeText('inet_service', networkOrder16(80), networkOrder16(90))).toBe('80-90');
  expect([3_600_000, 90_000, 0, 1500].map(timeText)).toEqual(['1h', '1m30s', '0s', '1s500ms']);
});
