import { describe, expect, it } from 'vitest';
import { customResourceProblems } from '../fakes/api-server/custom-resource.ts';

// The schema of deploy/crds against samples, and its rules.

const BLOCK = {
  apiVersion: 'nodeplane.io/v1alpha1',
  kind: 'PodCIDRBlock',
  metadata: { name: '10-244-0-64-26', labels: { 'nodeplane.io/node-hash': '0f' } },
  spec: {
    cidr: '10.244.0.64/26',
    pool: '10.244.0.0/16',
    node: 'node-1.example',
    nodeUID: '7c6f4d6e-0000-4000-8000-000000000000',
    holder: 'b2f1',
    state: 'pending',
    claimedAt: '2026-11-22T10:00:00.000Z',
    renewedAt: '2026-11-22T10:00:00Z',
  },
};

const withSpec = (spec: Record<string, unknown>, name = BLOCK.metadata.name) => ({
  ...BLOCK,
  metadata: { ...BLOCK.metadata, name },
  spec: Object.fromEntries(Object.entries({ ...BLOCK.spec, ...spec }).filter(([, value]) => value !== undefined)),
});
const problems = (object: unknown, live?: unknown) => customResourceProblems('PodCIDRBlock', object, live);

describe('a PodCIDRBlock', () => {
  it.each([
    ['as agents write it', BLOCK],
    ['of IPv6', withSpec({ cidr: 'fd00:10::40/122', pool: 'fd00:10::/104' }, 'fd00-10--40-122')],
    ['without a holder', withSpec({ holder: undefined, claimedAt: undefined, renewedAt: undefined })],
  ])('%s is accepted', (_, object) => expect(problems(object)).toEqual([]));

  it.each([
    ['no range', withSpec({ cidr: '10.244.0.64' }), 'spec.cidr: Invalid value: should match'],
    ['no CIDR', withSpec({ cidr: undefined }), 'spec.cidr: Required value'],
    ['no node', withSpec({ node: '' }), 'spec.node: Invalid value: at least 1 long'],
    ['no UID', withSpec({ nodeUID: undefined }), 'spec.nodeUID: Required value'],
    ['another state', withSpec({ state: 'claimed' }), 'spec.state: Unsupported value: "claimed"'],
    ['no time', withSpec({ renewedAt: 'now' }), 'spec.renewedAt: Invalid value: must be of type date-time'],
    ['a field nobody knows', withSpec({ size: '64' }), 'spec.size: Unknown field'],
    ['another name', withSpec({}, 'block-1'), '<root>: Invalid value: the name has to be spec.cidr with "-"'],
    ['no spec', { ...BLOCK, spec: 7 }, 'spec: Invalid value: must be of type object'],
  ])('with %s is refused', (_, object, problem) => {
    expect(problems(object)).toEqual([expect.stringContaining(problem)]);
  });

  it('keeps its range and its node', () => {
    expect(problems(withSpec({ node: 'node-2' }), BLOCK)[0]).toContain('a block never goes from one node to another');
    const other = withSpec({ cidr: '10.244.0.128/26' }, '10-244-0-128-26');
    expect(problems(other, BLOCK)[0]).toContain('the range of a block never changes');
  });

  it.each([
    ['pending', 'confirmed', true],
    ['pending', 'releasing', true],
    ['confirmed', 'releasing', true],
    ['confirmed', 'confirmed', true],
    ['confirmed', 'pending', false],
    ['releasing', 'confirmed', false],
    ['releasing', 'pending', false],
  ])('goes from %s to %s: %s', (from, to, isAllowed) => {
    expect(problems(withSpec({ state: to }), withSpec({ state: from })).length === 0).toBe(isAllowed);
  });
});
