import { expect, it } from 'vitest';
import { type Choose, type Meeting, walkAll } from './choices.ts';

it('walks every way once, in order, also where one choice opens another', () => {
  const { branches, complete } = walkAll(
    (choose) => {
      const first = choose('chance', 'numgen', 3);
      return first === 1 ? `1${choose('unknown', 'limit', 2)}` : String(first);
    },
    { ways: 100 },
  );
  expect(branches.map(({ result }) => result)).toEqual(['0', '10', '11', '2']);
  expect(branches[2]!.choices).toEqual([
    { kind: 'chance', about: 'numgen', options: 3, taken: 1 },
    { kind: 'unknown', about: 'limit', options: 2, taken: 1 },
  ]);
  expect(complete).toBe(true);
});

it('says so when there are more ways than it may walk', () => {
  const walk = () => walkAll((choose) => choose('chance', 'numgen', 1000), { ways: 10 });
  expect(walk().branches).toHaveLength(10);
  expect(walk().complete).toBe(false);
});

it('says so when there is more work than it may do', () => {
  const walk = (choose: Choose, meeting: Meeting) => {
    for (let rule = 0; rule < 90; rule++) meeting.evaluated();
    return choose('chance', 'numgen', 1000);
  };
  const { branches, complete } = walkAll(walk, { ways: 1000, rules: { most: 1000, perWay: 10 } });
  expect(complete).toBe(false);
  expect(branches).toHaveLength(11);
});

it('goes on once where ways meet that chance parted, and never joins what is not known', () => {
  const walked = (kind: 'chance' | 'unknown') => {
    const ended: string[] = [];
    const { branches, complete } = walkAll(
      (choose, meeting) => {
        const since = meeting.made;
        const drawn: number[] = [];
        // Ten of 16 slots are taken, as six rules in a row draw from them.
        for (let rule = 0; rule < 3; rule++) {
          const slot = choose(kind, `rule ${rule}`, 16);
          meeting.at(since, () => (slot < 10 ? `slot ${slot}` : `rule ${rule} missed`));
          drawn.push(slot);
          if (slot < 10) break;
        }
        ended.push(drawn.join());
        return drawn.at(-1)!;
      },
      { ways: 5000 },
    );
    return { complete, slots: [...new Set(branches.map(({ result }) => result))], ways: ended.length };
  };
  expect(walked('chance')).toEqual({ complete: true, slots: [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10], ways: 11 });
  expect(walked('unknown').ways).toBe(10 + 6 * 10 + 36 * 16);
});
