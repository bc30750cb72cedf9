import { expect, it } from 'vitest';
import { formatCidr, formatIp } from '../../core/index.ts';
import { internalIpOf, internalIpsOf, nodeIpsOf, podCidrTexts, podRangesOf } from './node-fields.ts';
import type { Node } from './types.ts';

const node = (spec: NonNullable<Node['spec']>, addresses: readonly [string, string][] = []): Node => ({
  kind: 'Node',
  metadata: { name: 'n1', namespace: '' },
  spec,
  status: { addresses: addresses.map(([type, address]) => ({ type, address })) },
});

it('reads the pod ranges of a Node, also where the older field stands alone', () => {
  const both = node({ podCIDR: '10.244.1.0/24', podCIDRs: ['10.244.1.0/24', 'fd00:0::/64', 'x'] });
  expect(podRangesOf(both, 'IPv6').map(formatCidr)).toEqual(['fd00::/64']);
  expect(podRangesOf(node({ podCIDR: '10.244.2.0/24' }), 'IPv4').map(formatCidr)).toEqual(['10.244.2.0/24']);
  expect(podCidrTexts(node({}))).toEqual([]);
});

it('reads the addresses of a Node, those inside the cluster first', () => {
  const named = node({}, [
    ['ExternalIP', '192.0.2.1'],
    ['Hostname', 'n1'],
    ['InternalIP', 'fd00:0::9'],
    ['InternalIP', '10.0.0.9'],
    ['InternalIP', 'x'],
  ]);
  expect(nodeIpsOf(named).map(formatIp)).toEqual(['fd00::9', '10.0.0.9', '192.0.2.1']);
  expect(internalIpsOf(named).map(formatIp)).toEqual(['fd00::9', '10.0.0.9']);
  expect(formatIp(internalIpOf(named, 'IPv4')!)).toBe('10.0.0.9');
  expect(internalIpOf(undefined, 'IPv4')).toBeUndefined();
});
