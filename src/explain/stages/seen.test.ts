import { expect, it } from 'vitest';
import { parseIp } from '../../core/index.ts';
import type { Answer } from '../answer/index.ts';
import type { SeenByAgent, SeenFlow } from '../knowledge/index.ts';
import { Report } from './report.ts';
import { seenBefore } from './seen.ts';

const target = { family: 'IPv4', protocol: 'TCP', ip: parseIp('10.96.0.12'), port: 80, service: undefined } as const;
const works: Answer = { ...new Report().answer(), verdict: 'works' };

const flow = (secondsAgo: number, change: Partial<SeenFlow> = {}): SeenFlow => ({
  secondsAgo,
  protocol: 'TCP',
  source: '10.244.1.7',
  destination: '10.96.0.12',
  port: 80,
  endpoint: { address: '10.244.1.9', port: 8080 },
  ...change,
});

function seen(what: Partial<SeenByAgent>, answer = works, from = '10.244.1.7') {
  const all = { unanswered: [], changes: [], gaps: [], ...what };
  return seenBefore({ seen: all } as never, target, from === '' ? undefined : parseIp(from), answer);
}

it('counts the flows of this client that were alike and recent, by endpoint', () => {
  const other = { endpoint: { address: 'fd00::9', port: 8080 } };
  const unanswered = [
    flow(5000),
    flow(400, other),
    flow(300),
    flow(200),
    flow(100, { protocol: 'UDP' }),
    flow(90, { port: 81 }),
    flow(80, { destination: '10.96.0.13' }),
    flow(70, { source: '10.244.1.8' }),
  ];
  const text =
    '3 connections like this were given up without an answer, 3 min ago: 2 to 10.244.1.9:8080, 1 to [fd00::9]:8080';
  expect(seen({ unanswered })).toEqual([{ kind: 'unanswered', text, secondsAgo: 200 }]);
  expect(seen({ unanswered }, works, '')).toMatchObject([{ text: expect.stringMatching(/^4 .* 70 s ago/) }]);
});

it('counts those to a pod by whatever Service, and one of nothing that was translated', () => {
  const asked = { address: '10.96.0.12', port: 80 };
  expect(seen({ unanswered: [flow(9, { destination: '10.96.7.7', port: 7, endpoint: asked })] })).toHaveLength(1);
  expect(seen({ unanswered: [flow(9, { endpoint: null })] })).toMatchObject([
    { text: 'a connection like this was given up without an answer, 9 s ago' },
  ]);
  expect(seen({ unanswered: [] })).toEqual([]);
});

it('tells who changed the table that decides, or lately ours, the newest first', () => {
  const change = (by: string, table: string, name: string | null = null) => {
    return { secondsAgo: 60, by, what: `added chain ${table} ${name}`, places: [{ table, name }] };
  };
  const report = new Report();
  const evidence = [
    { source: 'nftables', object: 'inet fence gate rule 7', value: 'drop' },
    { source: 'conntrack', object: 'ip other x', value: '' },
  ];
  report.fail('rules', { code: 'foreign-drop', text: 'x', remedy: [] }, evidence);
  const changes = [
    change('a', 'inet fence', 'gate'),
    change('b', 'inet fences', 'gate'),
    change('c', 'inet nodeplane'),
    change('d', 'ip other', 'x'),
    change('e', 'ip nat', 'KUBE-SERVICES'),
  ];
  const told = seen({ changes }, report.answer());
  expect(told.map(({ text }) => text.split(' ')[0])).toEqual(['e', 'c']);
  expect(seen({ changes: changes.slice(0, 2) }, report.answer())).toMatchObject([
    { kind: 'rules', text: 'a added chain inet fence gate, 60 s ago' },
  ]);
  expect(seen({ changes }).map(({ text }) => text.split(' ')[0])).toEqual(['e', 'c']);
  const before = changes.map((one) => ({ ...one, secondsAgo: 5000 }));
  expect(seen({ changes: before }, report.answer())).toMatchObject([
    { text: expect.stringMatching(/^a .*, 83 min ago$/) },
  ]);
  expect(seen({ changes: before })).toEqual([]);
  expect(seen({ changes: [change('kubelet', 'ip filter', 'KUBE-FIREWALL')] }, report.answer())).toEqual([]);
});

it('says what may have been missed, and nothing without an agent', () => {
  expect(seen({ gaps: ['more'] })).toEqual([{ kind: 'missed', text: 'more', secondsAgo: null }]);
  expect(seenBefore({ seen: null } as never, target, undefined, works)).toEqual([]);
});
