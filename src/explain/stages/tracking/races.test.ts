import { expect, it } from 'vitest';
import type { NodeView } from '../../node/index.ts';
import type { Asked } from '../asked.ts';
import { Report } from '../report.ts';
import { countedLately } from './lately.ts';
import { lookAtRaces } from './races.ts';

// What kernels of the lab do not lose any more; test/lab/explain/faults-tracking.test.ts has what they join.

type Counters = Readonly<Record<string, number>>;

const nodeWith = (counters: Counters) => ({ tracking: { counters } }) as unknown as NodeView;
const knowing = (counters: Counters, secondsAgo = 90.4) => ({ trackingBefore: { secondsAgo, counters } });

function askedOf(before: Counters | null, protocol = 'UDP') {
  const knowledge = before ? knowing(before) : { trackingBefore: null };
  return { target: { protocol, service: {} }, knowledge } as unknown as Asked;
}

function answerWith(asked: Asked, counters: Counters) {
  const report = new Report();
  lookAtRaces(asked, nodeWith(counters), report);
  const { verdict, warnings, path } = report.answer();
  const evidence = path.flatMap((stage) => stage.evidence.map(({ value }) => value));
  return { verdict, warnings, evidence };
}

it('takes off what was counted before, and never less than nothing', () => {
  const { seconds, by } = countedLately(knowing({ invalid: 5, drop: 9 }) as never, nodeWith({ invalid: 12, drop: 3 }))!;
  expect(seconds).toBe(90);
  expect(by('invalid')).toBe(7);
  expect(by('drop')).toBe(0);
  expect(by('clashres')).toBe(0);
  expect(countedLately({ trackingBefore: null } as never, nodeWith({ invalid: 12 }))).toBeUndefined();
});

it('warns of packets that lost the race, with those that did not as evidence', () => {
  const { verdict, warnings, evidence } = answerWith(askedOf({ insert_failed: 100, clashres: 50 }), {
    insert_failed: 103,
    clashres: 54,
  });
  expect(verdict).toBe('works');
  expect(warnings).toEqual([
    {
      code: 'insert-race',
      text: expect.stringMatching(/^3 packets were dropped in the last 90 s, of all flows, .* \(4 were let through\)/),
    },
  ]);
  expect(evidence).toEqual(['3, 4 in the last 90 s, of all flows']);
});

it('says nothing of what the kernel joined, of former times, of TCP, and without a look before', () => {
  const now = { insert_failed: 100, clashres: 60 };
  const joined = answerWith(askedOf({ insert_failed: 100, clashres: 50 }), now);
  expect(joined).toMatchObject({ warnings: [], evidence: ['0, 10 in the last 90 s, of all flows'] });
  const nothing = { warnings: [], evidence: [] };
  expect(answerWith(askedOf(now), now)).toMatchObject(nothing);
  expect(answerWith(askedOf({ insert_failed: 0 }, 'TCP'), now)).toMatchObject(nothing);
  expect(answerWith(askedOf(null), now)).toMatchObject(nothing);
});
