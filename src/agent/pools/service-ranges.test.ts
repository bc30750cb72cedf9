import { expect, it } from 'vitest';
import { formatCidr, parseCidr } from '../../core/index.ts';
import type { ServiceCIDR } from '../../kube/index.ts';
import { ServiceRanges } from './service-ranges.ts';

const services = new ServiceRanges();
const object = {
  kind: 'ServiceCIDR',
  metadata: { name: 'kubernetes' },
  spec: { cidrs: ['10.96.0.0/16', 'fd00:96::/112'] },
} as unknown as ServiceCIDR;

function without(...sets: string[][]) {
  const ranges = sets.map((set) => set.map(parseCidr));
  const own = services.without({ sets: ranges, lacking: '', held: ranges.flat() });
  return { ...own, sets: own.sets.map((set) => set.map(formatCidr)), held: own.held.map(formatCidr) };
}

it('pods get no addresses before the Service ranges are known', () => {
  expect(without(['10.244.1.0/24'])).toEqual({
    sets: [],
    held: ['10.244.1.0/24'],
    lacking: 'the Service ranges of the cluster are not read yet',
  });
  expect(without()).toMatchObject({ sets: [], lacking: '' });
  services.complete();
});

it('pods get no addresses of the Service range, and the reason names both', () => {
  expect(without(['10.96.0.0/26'])).toMatchObject({ sets: [['10.96.0.0/26']], lacking: '' });
  expect(services.apply({ type: 'added', object })).toBe(true);
  expect(without(['10.244.1.0/24'], ['fd00:244::/64'])).toMatchObject({
    sets: [['10.244.1.0/24'], ['fd00:244::/64']],
    lacking: '',
  });
  expect(without(['10.96.0.0/26'])).toEqual({
    sets: [],
    held: ['10.96.0.0/26'],
    lacking: expect.stringContaining('10.96.0.0/26 of this node’s pods overlaps the Service range 10.96.0.0/16'),
  });
  expect(without(['10.244.1.0/24'], ['fd00::/16'])).toMatchObject({
    sets: [],
    lacking: expect.stringContaining('fd00::/16 of this node’s pods overlaps the Service range fd00:96::/112'),
  });
});

it('another range of the same family does', () => {
  expect(without(['10.96.0.0/26', '10.244.0.0/26'])).toMatchObject({ sets: [['10.244.0.0/26']], lacking: '' });
  expect(services.apply({ type: 'deleted', object })).toBe(true);
  expect(without(['10.96.0.0/26'])).toMatchObject({ sets: [['10.96.0.0/26']] });
});
