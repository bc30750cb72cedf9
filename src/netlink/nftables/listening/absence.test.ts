import { describe, expect, it } from 'vitest';
import type { CommitReport } from '../object/model.ts';
import { addListener, countOwnCommit, rulesetHere, unheard } from './absence.ts';

const REPORT: CommitReport = { generation: 6, messages: 3, bytes: 100, kernelSeconds: 0 };

function setup() {
  const heard: unknown[] = [];
  const remove = addListener({
    leave: () => heard.push('leaves'),
    rejoin: () => heard.push('is back'),
    missed: (what) => heard.push(what),
  });
  let generation = 5;
  const commit = (changes: { own?: number; others?: number }) => async () => {
    generation += (changes.own ?? 0) + (changes.others ?? 0);
    for (let i = 0; i < (changes.own ?? 0); i++) countOwnCommit();
    return REPORT;
  };
  const ask = () => {
    if (Number.isNaN(generation)) throw new Error('EBADF');
    return generation;
  };
  return { heard, remove, commit, ask, fail: () => (generation = Number.NaN) };
}

describe('unheard', () => {
  it('tells the number of own transactions, however many', async () => {
    const { heard, remove, commit, ask } = setup();
    expect(await unheard(rulesetHere(), ask, commit({ own: 2 }))).toBe(REPORT);
    expect(heard).toEqual(['leaves', 'is back', { own: 7 }]);
    remove();
  });

  it('tells that others were there, and nothing where nothing was done', async () => {
    const { heard, remove, commit, ask } = setup();
    await unheard(rulesetHere(), ask, commit({ own: 1, others: 1 }));
    expect(heard).toEqual(['leaves', 'is back', 'by others']);
    heard.length = 0;
    await expect(unheard(rulesetHere(), ask, () => Promise.reject(new Error('EEXIST')))).rejects.toThrow('EEXIST');
    expect(heard).toEqual(['leaves', 'is back']);
    remove();
  });

  it('waits for the last of several transactions', async () => {
    const { heard, remove, commit, ask } = setup();
    let finish = () => {};
    const long = unheard(rulesetHere(), ask, async () => {
      await new Promise<void>((resolve) => (finish = resolve));
      return commit({ own: 1 })();
    });
    await unheard(rulesetHere(), ask, commit({ own: 1 }));
    expect(heard).toEqual(['leaves']);
    finish();
    await long;
    expect(heard).toEqual(['leaves', 'is back', { own: 7 }]);
    remove();
  });

  it('leaves those alone that listen elsewhere, or were closed meanwhile', async () => {
    const { heard, remove, commit, ask } = setup();
    await unheard('another', ask, commit({ own: 1 }));
    expect(heard).toEqual([]);
    await unheard(rulesetHere(), ask, async () => {
      remove();
      return commit({ own: 1 })();
    });
    expect(heard).toEqual(['leaves']);
  });

  it('takes a kernel that cannot be asked any more for one that others changed, and keeps the outcome', async () => {
    const { heard, remove, ask, fail } = setup();
    await expect(
      unheard(rulesetHere(), ask, async () => {
        fail();
        throw new Error('closed');
      }),
    ).rejects.toThrow('closed');
    expect(heard).toEqual(['leaves', 'is back', 'by others']);
    remove();
  });
});
