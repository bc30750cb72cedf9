import { beforeEach, expect, it } from 'vitest';
import { nodeObject } from '../../../../test/fakes/routes/node-objects.ts';
import { formatCidr, parseCidr } from '../../../core/index.ts';
import { decodeObject, KINDS, type ObjectEvent } from '../../../kube/index.ts';
import { blockName, parsePools } from '../../../pools/index.ts';
import { ManifestRanges } from './manifest-ranges.ts';

const POOLS = parsePools([{ cidr: '10.1.0.0/16' }, { cidr: 'fd00::/104' }]);
let ranges: ManifestRanges;

beforeEach(() => {
  ranges = new ManifestRanges('me', POOLS);
});

function tell(type: ObjectEvent['type'], cidr: string, node = 'me'): readonly string[] {
  const object = decodeObject(KINDS.PodCIDRBlock, { metadata: { name: blockName(cidr) }, spec: { cidr, node } })
    .object!;
  return ranges.event({ type, object });
}

const sets = () => ranges.own().sets.map((set) => set.map(formatCidr));

it('are what the manifests give: an address of each family that there are pools of, or none', () => {
  expect(ranges.own()).toEqual({
    sets: [],
    held: [],
    lacking:
      'no PodCIDRBlock in the manifests gives node "me" a range of IPv4; no PodCIDRBlock in the manifests gives node "me" a range of IPv6',
  });
  tell('added', '10.1.0.0/26');
  tell('added', '10.1.0.64/26');
  expect(ranges.own()).toMatchObject({ sets: [], lacking: expect.stringMatching(/^[^;]* a range of IPv6$/) });
  expect(ranges.own().held.map(formatCidr)).toEqual(['10.1.0.0/26', '10.1.0.64/26']);
  tell('added', 'fd00::/122');
  expect(sets()).toEqual([['10.1.0.0/26', '10.1.0.64/26'], ['fd00::/122']]);
});

it('are those of other nodes for routes, and of a block that was taken out no more', () => {
  expect(tell('added', '10.1.2.0/26', 'other')).toEqual(['other']);
  expect(ranges.ofNode(nodeObject({ name: 'other', ips: [], podCidrs: ['10.9.0.0/24'] }))).toEqual(['10.1.2.0/26']);
  tell('added', '10.1.0.0/26');
  expect(ranges.isGone(parseCidr('10.1.0.0/26'))).toBe(false);
  expect(tell('deleted', '10.1.0.0/26')).toEqual(['me']);
  expect([ranges.isGone(parseCidr('10.1.0.0/26')), ranges.isGone(parseCidr('10.1.2.0/26'))]).toEqual([true, false]);
});

it('are complete when all manifests were read', async () => {
  let isComplete = false;
  void ranges.complete.then(() => {
    isComplete = true;
  });
  await Promise.resolve();
  expect(isComplete).toBe(false);
  ranges.synced();
  await ranges.complete;
  expect(isComplete).toBe(true);
});
