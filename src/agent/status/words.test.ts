import { expect, it } from 'vitest';
import type { Verdict } from '../../proxy/index.ts';
import type { PortReport, ServiceReport } from './status.ts';
import { standingOf } from './words.ts';

it.each<[readonly [Verdict, Verdict | null][], string]>([
  [[['forward', null]], ''],
  [[['forward', 'drop']], 'from outside dropped: no endpoint on this node, policy Local'],
  [[['drop', 'forward']], 'at the ClusterIP dropped: no endpoint on this node, policy Local'],
  [[['drop', null]], 'dropped: no endpoint on this node, policy Local'],
  [[['drop', 'drop']], 'dropped: no endpoint on this node, policy Local'],
  [
    [
      ['forward', 'drop'],
      ['reject', 'reject'],
    ],
    'refused: no endpoint anywhere',
  ],
])('of the verdicts %j people read "%s"', (verdicts, text) => {
  const ports = verdicts.map(
    ([internalVerdict, externalVerdict]): Partial<PortReport> => ({ leftOut: null, internalVerdict, externalVerdict }),
  );
  expect(standingOf({ ports, problems: [] } as unknown as ServiceReport).text).toBe(text);
});
