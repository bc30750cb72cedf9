import { describe, expect, it } from 'vitest';
import { type ComparedPart, type Drift, nothingToCompare } from '../../core/index.ts';
import { reportPart } from './report.ts';

const DRIFT: Drift = { object: 'table nat', difference: 'changed' };

/** What each comparison comes to, in turn; and how often it was repaired. */
function partOf(...found: (readonly Drift[] | Error)[]): ComparedPart & { repairs: number } {
  return {
    name: 'Services IPv4',
    repairs: 0,
    async compare() {
      const next = found.shift()!;
      if (next instanceof Error) throw next;
      return next;
    },
    async repair() {
      this.repairs++;
    },
  };
}

describe('a repair that is asked for', () => {
  it('is made where the last sync failed, so that nothing can be compared before', async () => {
    const part = partOf(nothingToCompare('Services IPv4', 'the last sync failed'), []);
    expect(await reportPart(part, { repair: true })).toMatchObject({
      verdict: 'equal',
      reason: null,
      repairedTotal: 0,
    });
    expect(part.repairs).toBe(1);
  });

  it('is not made where nothing differs', async () => {
    const part = partOf([]);
    expect(await reportPart(part, { repair: true })).toMatchObject({ verdict: 'equal' });
    expect(part.repairs).toBe(0);
  });

  it('tells what differs after it as well', async () => {
    const part = partOf([DRIFT], [DRIFT]);
    expect(await reportPart(part, { repair: true })).toMatchObject({ verdict: 'differs', total: 1, repairedTotal: 0 });
  });
});

it('a question repairs nothing, whatever it finds', async () => {
  const part = partOf(nothingToCompare('Services IPv4', 'the last sync failed'), [DRIFT]);
  const reason = expect.stringContaining('the last sync failed');
  expect(await reportPart(part, { repair: false })).toMatchObject({ verdict: 'unknown', reason });
  expect(await reportPart(part, { repair: false })).toMatchObject({ verdict: 'differs', total: 1 });
  expect(part.repairs).toBe(0);
});
