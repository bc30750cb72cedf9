import { expect, it } from 'vitest';
import { Report } from './report.ts';

// What is found on two ways to one endpoint, joined. test/lab/explain/marks.test.ts has such ways in a kernel.

const ADDRESS = '10.244.1.2:8080';

function joined(look: { first?: (report: Report) => void; other?: (report: Report) => void; unsure?: string }) {
  const report = new Report();
  report.addEndpoint({ address: ADDRESS, node: null, here: true, used: true, reason: 'ready' });
  look.first?.(report);
  const other = report.another();
  look.other?.(other);
  report.join(other, [{ address: ADDRESS, unsure: look.unsure }]);
  const { verdict, code, cause } = report.answer();
  return { verdict, code, cause };
}

const drops = (report: Report) =>
  report.failEndpoint('route', ADDRESS, { code: 'foreign-drop', text: 'a rule drops it', remedy: [] });

it('works where both ways work, and fails where both fail', () => {
  expect(joined({})).toMatchObject({ verdict: 'works' });
  expect(joined({ first: drops, other: drops })).toMatchObject({ verdict: 'fails', code: 'foreign-drop' });
});

it.each([{ first: drops }, { other: drops }])('fails by chance where one of them fails: %o', (look) => {
  const { cause, ...said } = joined(look);
  expect(said).toEqual({ verdict: 'partly', code: 'foreign-drop' });
  expect(cause).toContain('by chance');
  expect(joined({ ...look, unsure: 'a limit' })).toMatchObject({
    verdict: 'unknown',
    cause: expect.stringContaining('by a limit'),
  });
});

it('cannot tell where something on the other way decides that nobody knows', () => {
  const { cause, ...said } = joined({ other: (report) => report.doubt('a program of XDP is met') });
  expect(said).toMatchObject({ verdict: 'unknown' });
  expect(cause).toContain('a program of XDP is met');
});

it.each([
  [['unsure', 'unsure'], 'unknown'],
  [['sure', 'sure'], 'partly'],
  [['sure', 'unsure'], 'unknown'],
  [['unsure', 'sure'], 'unknown'],
] as const)('of two endpoints, the first of which fails, it gets: %o', ([first, second], verdict) => {
  const report = new Report();
  const other = '10.244.1.3:8080';
  for (const address of [ADDRESS, other])
    report.addEndpoint({ address, node: null, here: true, used: true, reason: 'ready' });
  drops(report);
  const way = (address: string, how: 'sure' | 'unsure') => ({ address, ...(how === 'unsure' && { unsure: 'a list' }) });
  report.settle([way(ADDRESS, first), way(other, second)]);
  expect(report.answer()).toMatchObject({
    verdict,
    ...(verdict === 'unknown' && { cause: expect.stringContaining('by a list') }),
  });
});

it('says of how many endpoints it cannot tell, where others fail', () => {
  const report = new Report();
  for (const address of [ADDRESS, '10.244.2.2:8080', '10.244.2.3:8080'])
    report.addEndpoint({ address, node: null, here: address === ADDRESS, used: true, reason: 'ready' });
  drops(report);
  expect(report.answer()).toMatchObject({ verdict: 'partly', cause: expect.stringMatching(/a rule drops it\.$/) });
  report.cannotTellEndpoint('link', '10.244.2.2:8080', 'is on node-2');
  expect(report.answer()).toMatchObject({
    verdict: 'partly',
    cause: `1 of 3 endpoints fail: ${ADDRESS}: a rule drops it; of 1 it cannot be told.`,
  });
});
