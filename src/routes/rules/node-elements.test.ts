import { expect, it } from 'vitest';
import { nodeObject, numberedNode } from '../../../test/fakes/routes/node-objects.ts';
import { parseCidr } from '../../core/index.ts';
import { FLANNEL_ANNOTATIONS } from '../../kube/index.ts';
import { ownElements, peerElements } from './node-elements.ts';
import type { RuleSettings } from './settings.ts';

const SETTINGS: RuleSettings = {
  tunnelPort: 8472,
  masqueradeMark: 0x4000,
  masquerade: { ownPods: ['IPv4'], sources: [], exempt: [], keepsSourceToNodes: false, randomFully: true },
};

it('another Node adds its addresses and the ranges of its pods', () => {
  expect(peerElements(numberedNode(2), SETTINGS)).toEqual([
    'peers-ipv4 0a000002',
    'peers-ipv6 fd000000000000000000000000000002',
    'kept-ipv4-24 0a400200',
    'kept-ipv6-64 fd000010024400020000000000000000',
  ]);
  expect(peerElements(numberedNode(2), { ...SETTINGS, masquerade: undefined })).toHaveLength(2);
});

it('a node of flannel is where flannel says, too', () => {
  const { managed, backendType, backendData, publicIp } = FLANNEL_ANNOTATIONS;
  const annotations = {
    [managed]: 'true',
    [backendType]: 'vxlan',
    [backendData]: '{"VNI":1,"VtepMAC":"12:c6:65:89:b4:e3"}',
    [publicIp]: '192.0.2.7',
  };
  expect(peerElements(numberedNode(2, { annotations }), SETTINGS).slice(0, 2)).toEqual([
    'peers-ipv4 c0000207',
    'peers-ipv4 0a000002',
  ]);
});

it.each([
  ['loopback', { ips: ['127.0.0.1', '::1'] }],
  ['no address at all', { ips: ['0.0.0.0', '::'] }],
  ['names', { ips: ['example.org'] }],
])('%s are no addresses of a node', (_, { ips }) => {
  expect(peerElements(nodeObject({ name: 'n', ips, podCidrs: [] }), SETTINGS)).toEqual([]);
});

it('what a Node says is bounded', () => {
  const ips = Array.from({ length: 100 }, (_, at) => `10.0.0.${at + 1}`);
  expect(peerElements(nodeObject({ name: 'n', ips, podCidrs: [] }), SETTINGS)).toHaveLength(8);
  const podCidrs = Array.from({ length: 1000 }, (_, at) => `10.${at >> 8}.${at & 255}.0/24`);
  expect(peerElements(nodeObject({ name: 'n', ips: [], podCidrs }), SETTINGS)).toHaveLength(256);
  // It would have everything leave as it is.
  expect(peerElements(nodeObject({ name: 'n', ips: [], podCidrs: ['0.0.0.0/0', '::/1'] }), SETTINGS)).toEqual([]);
});

it('of this node’s own ranges those of the chosen families are masqueraded', () => {
  const ranges = ['10.244.1.9/24', 'fd00:10:244:1::/64'].map(parseCidr);
  expect(ownElements(ranges, SETTINGS)).toEqual([
    'kept-ipv4-24 0af40100',
    'masqueraded-ipv4-24 0af40100',
    'kept-ipv6-64 fd000010024400010000000000000000',
  ]);
  expect(ownElements(ranges, { ...SETTINGS, masquerade: undefined })).toEqual([]);
});
