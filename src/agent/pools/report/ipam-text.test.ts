import { expect, it } from 'vitest';
import { ipamCheckText, ipamText } from './ipam-text.ts';

it('prints pools and the ranges of the node', () => {
  const text = ipamText({
    node: 'node-1',
    from: 'pool',
    pools: [{ cidr: '10.244.0.0/16', blockSize: 26, blocks: 1024, free: 1022, nodes: 2 }],
    ranges: [
      { cidr: '10.244.0.64/26', state: 'confirmed', used: 61, free: 0 },
      { cidr: '10.244.9.0/26', state: 'pending', used: 0, free: 61 },
    ],
    blocks: [],
  });
  expect(text).toBe(`POOL           BLOCK  BLOCKS  FREE  NODES
10.244.0.0/16  /26      1024  1022      2

Node node-1
RANGE           STATE      USED  FREE
10.244.0.64/26  confirmed    61     0
10.244.9.0/26   pending       0    61
`);
  const ranges = [{ cidr: 'fd00::/64', state: 'podCIDR', used: 3, free: Number.MAX_SAFE_INTEGER }];
  expect(ipamText({ node: 'n', from: 'node', pools: [], ranges, blocks: [] })).toBe(`Node n
RANGE      STATE    USED  FREE
fd00::/64  podCIDR     3  2^64
`);
  const unknown = [{ cidr: '10.9.0.0/24', state: 'podCIDR' }];
  expect(ipamText({ node: 'n', from: 'node', pools: [], ranges: unknown, blocks: [] })).toBe(`Node n
RANGE        STATE    USED  FREE
10.9.0.0/24  podCIDR     ?     ?

?: without --cni it is not known where addresses of this node’s pods are reserved; give the flags that its agent has
`);
  expect(ipamText({ node: 'n', from: 'node', pools: [], ranges: [], blocks: [] })).toBe(
    'Node n has no range of pod addresses\n',
  );
});

it('prints what was found, how to mend it, and what was not looked at', () => {
  const finding = { kind: 'gone', what: '10.1.0.2', message: 'is lost', remedy: 'wait' } as const;
  expect(ipamCheckText({ node: 'n', findings: [finding], notLookedAt: ['blocks: no answer'] })).toBe(
    '10.1.0.2 is lost\n  to mend it: wait\nNot looked at: blocks: no answer\n',
  );
  expect(ipamCheckText({ node: 'n', findings: [], notLookedAt: [] })).toBe('All addresses are in order\n');
});
