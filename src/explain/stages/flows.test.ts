import { expect, it } from 'vitest';
import { parseIp } from '../../core/index.ts';
import type { NodeView } from '../node/index.ts';
import type { Asked } from './asked.ts';
import { lookAtFlows } from './flows.ts';
import { Report } from './report.ts';

// The limit belongs to the whole machine, so that no lab may reach it.

const asked = {
  target: { family: 'IPv4', protocol: 'TCP', ip: parseIp('10.96.0.1'), port: 80, service: undefined },
  client: { kind: 'node', ip: parseIp('192.0.2.1') },
} as unknown as Asked;

function answerWith(count: string, max: string | undefined) {
  const settings: Record<string, string | undefined> = {
    'net/netfilter/nf_conntrack_count': count,
    'net/netfilter/nf_conntrack_max': max,
  };
  const node: Pick<NodeView, 'sysctl' | 'flowsTo'> = { sysctl: (name) => settings[name], flowsTo: () => [] };
  const report = new Report();
  lookAtFlows(asked, undefined, node as NodeView, report);
  return report.answer();
}

it('finds the table of tracked connections full', () => {
  const { verdict, code, cause, remedy } = answerWith('262144', '262144');
  expect({ verdict, code }).toEqual({ verdict: 'fails', code: 'conntrack-full' });
  expect(cause).toBe('262144 of 262144 tracked connections: new ones are dropped.');
  expect(remedy[0]).toBe('sysctl -w net.netfilter.nf_conntrack_max=524288');
});

it.each([
  ['half full', '131072', '262144'],
  ['without a limit', '131072', '0'],
  ['without connection tracking', '', undefined],
])('does not when it is %s', (_, count, max) => {
  expect(answerWith(count, max)).toMatchObject({ verdict: 'works', code: null });
});
