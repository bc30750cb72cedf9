import { expect, it } from 'vitest';
import { preflightWorld } from '../../test/fakes/preflight-world.ts';
import { CHECKS } from './checks.ts';
import { fails, ok, skipped, unknown, warning } from './finding.ts';
import { reportJson, reportOf, reportText } from './report.ts';
import { runChecks } from './run-checks.ts';

const facts = { version: '1.2.3', node: 'node-1', mode: 'iptables', strict: false };
const findings = [
  { check: 'a.one', ...ok('is well') },
  { check: 'a.two', ...warning('is odd', 'mend it') },
  { check: 'b.one', ...skipped('was not asked for') },
];

it('has a line for each check, in groups, with the remedy', () => {
  expect(reportText(reportOf(findings, facts))).toBe(`Node node-1, mode iptables

ok             a.one  is well
warning        a.two  is odd -> mend it

not looked at  b.one  was not asked for

1 ok, 1 warning, 0 fails, 0 cannot tell, 1 not looked at
`);
});

it('fails for what fails, and if it is to be strict for warnings and what cannot be told', () => {
  const result = (state: 'fails' | 'unknown' | 'warning', strict: boolean) => {
    const outcome = { fails: fails('m', 'r'), unknown: unknown('m'), warning: warning('m', 'r') }[state];
    return reportOf([{ check: 'a.one', ...outcome }], { ...facts, strict }).result;
  };
  expect(result('fails', false)).toBe('fails');
  for (const state of ['warning', 'unknown'] as const) {
    expect(result(state, false)).toBe('ok');
    expect(result(state, true)).toBe('fails');
  }
  expect(reportOf([findings[0]!, findings[2]!], { ...facts, strict: true }).result).toBe('ok');
});

it('JSON has these fields, and names stay what they are', () => {
  const message = 'a\u001b[31m\u009b\u202e"b"\n';
  const report = reportOf([{ check: 'a.one', state: 'ok', message }], facts);
  const text = reportJson(report);
  expect(JSON.parse(text)).toEqual({
    schemaVersion: 1,
    version: '1.2.3',
    node: 'node-1',
    mode: 'iptables',
    result: 'ok',
    counts: { ok: 1, warning: 0, fails: 0, unknown: 0, skipped: 0 },
    findings: [{ check: 'a.one', state: 'ok', message }],
  });
  expect(text.replaceAll('\n', '')).not.toMatch(/[\p{Cc}\u202e]/u);
});

it('hostile names reach the terminal as text, on their line', () => {
  const text = reportText(
    reportOf([{ check: 'a.one', ...ok('\u001b]0;x\u0007 \n fails  a.two <b>') }], { ...facts, node: '\u009bm' }),
  );
  expect(text.split('\n')).toHaveLength(6);
  expect(text.replaceAll('\n', '')).not.toMatch(/\p{Cc}/u);
});

it('a check that throws, or never answers, is a line; the order is that of the list', async () => {
  const world = await preflightWorld();
  const checks = [
    { name: 'a.hangs', look: () => new Promise<never>(() => {}) },
    {
      name: 'a.throws',
      look: () => {
        throw new Error('no such thing');
      },
    },
    { name: 'a.rejects', look: () => Promise.reject(new Error('nor this')) },
    { name: 'a.works', look: () => ok('it does') },
  ];
  expect(await runChecks(world, { limitMs: 20, checks })).toEqual([
    { check: 'a.hangs', state: 'unknown', message: 'no answer within 0.02 s' },
    { check: 'a.throws', state: 'unknown', message: 'no such thing' },
    { check: 'a.rejects', state: 'unknown', message: 'nor this' },
    { check: 'a.works', state: 'ok', message: 'it does' },
  ]);
});

it('on a node where nothing can be read every line says so', async () => {
  const broken = new Proxy(
    {},
    {
      get: () => () => {
        throw new Error('broken');
      },
    },
  );
  const world = { ...(await preflightWorld({ flags: ['--cni', '--routes=auto'] })), node: broken as never };
  const states = (await runChecks(world, { limitMs: 1000 })).map(({ state }) => state);
  expect(states).toHaveLength(CHECKS.length);
  expect(states.filter((state) => state === 'unknown').length).toBeGreaterThan(15);
});
