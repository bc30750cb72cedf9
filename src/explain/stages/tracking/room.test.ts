import { expect, it } from 'vitest';
import { parseIp } from '../../../core/index.ts';
import type { NodeView } from '../../node/index.ts';
import type { Asked } from '../asked.ts';
import { Report } from '../report.ts';
import { lookAtRoom } from './room.ts';

// Thresholds; test/lab/explain/faults-tracking.test.ts fills real tables.

const asked = { target: { family: 'IPv4', protocol: 'TCP' }, client: { kind: 'outside' } } as unknown as Asked;
const goal = {
  address: '10.244.1.2:8080',
  ip: parseIp('10.244.1.2'),
  port: 8080,
  masqueraded: true,
  source: parseIp('10.244.1.1'),
  byIpvs: false,
};

interface Table {
  readonly count: number;
  readonly max?: number;
  readonly replaceable?: number;
  readonly rows?: number;
  readonly ports?: { readonly all: number; readonly lasting: number };
}

function answerWith({ count, max = 0, replaceable = 0, rows, ports = { all: 0, lasting: 0 } }: Table) {
  const tracking: Partial<NodeView['tracking']> = {
    room: { count, max },
    counters: {},
    sampleReplaceable: () => ({ seen: 100, replaceable }),
    takenPorts: (_, [use]) => new Map([[use!, ports]]),
  };
  const report = new Report();
  report.addEndpoint({ address: goal.address, node: null, here: true, used: true, reason: 'ready' });
  const sysctl = (name: string) => (name.endsWith('_buckets') ? rows?.toString() : undefined);
  const node = { tracking, sysctl } as unknown as NodeView;
  lookAtRoom(asked, [goal], node, report);
  const { verdict, code, cause, remedy, warnings } = report.answer();
  return { verdict, code, cause, remedy, warnings: warnings.map((one) => one.code) };
}

it('finds the table of tracked connections full', () => {
  const { cause, remedy, ...said } = answerWith({ count: 262_144, max: 262_144 });
  expect(said).toMatchObject({ verdict: 'fails', code: 'conntrack-full' });
  expect(cause).toContain('262144 of 262144 tracked connections, and none that could make room');
  expect(remedy[0]).toBe('sysctl -w net.netfilter.nf_conntrack_max=524288');
});

it('finds it full in part where some can make room', () => {
  const said = answerWith({ count: 262_144, max: 262_144, replaceable: 1 });
  expect(said).toMatchObject({ verdict: 'partly', code: 'conntrack-full' });
});

it('warns where there is always one that can', () => {
  const said = answerWith({ count: 262_144, max: 262_144, replaceable: 90 });
  expect(said).toMatchObject({ verdict: 'works', warnings: ['conntrack-full'] });
});

it.each([
  [65_536, 90, 'partly'],
  [1000, 90, 'fails'],
  [1000, 100, 'partly'],
  [40, 100, 'fails'],
])(
  'of a table with many more rows, full with %d flows of which %d %% can make room, says %s',
  (max, replaceable, verdict) => {
    expect(answerWith({ count: max, max, replaceable, rows: max === 1000 ? 1_600_000 : 262_144 })).toMatchObject({
      verdict,
    });
  },
);

it('warns before it is full, and not in any other case', () => {
  const said = (count: number, max: number) => answerWith({ count, max });
  expect(said(262_143, 262_144)).toMatchObject({ verdict: 'works', warnings: ['conntrack-full'] });
  expect(said(131_072, 262_144)).toMatchObject({ verdict: 'works', warnings: [] });
  expect(said(131_072, 0)).toMatchObject({ verdict: 'works', warnings: [] });
  expect(said(Number.NaN, Number.NaN)).toMatchObject({ verdict: 'works', warnings: [] });
});

it.each([
  [64_512, 64_512, { verdict: 'fails', code: 'snat-ports' }],
  // Those of connections that are over are given away again by newer kernels.
  [64_512, 64_511, { verdict: 'partly', code: 'snat-ports' }],
  [64_000, 0, { verdict: 'partly', code: 'snat-ports' }],
  [60_000, 60_000, { verdict: 'works', warnings: ['snat-ports'] }],
  [50_000, 50_000, { verdict: 'works', warnings: [] }],
])('%d source ports are taken, %d of them for long', (all, lasting, said) => {
  expect(answerWith({ count: 70_000, ports: { all, lasting } })).toMatchObject(said);
});
