import { expect, it } from 'vitest';
import type { RouteFigures } from '../../routes/index.ts';
import { RouteReadiness } from './route-readiness.ts';

const figures = (wanted: number, inKernel: number): RouteFigures => ({
  peers: {} as never,
  wanted,
  inKernel,
  leftOut: 0,
});
const synced = (family: 'IPv4' | 'IPv6', wanted: number, inKernel: number) =>
  ({
    kind: 'synced',
    family,
    full: true,
    seconds: 0,
    operations: 0,
    figures: figures(wanted, inKernel),
    own: {} as never,
  }) as const;

it('is ready when a family has all its routes in the kernel, and none failed', () => {
  const readiness = new RouteReadiness();
  expect(readiness.reason()).toBe('the routes are not written yet');
  readiness.observe({ kind: 'waiting', family: 'IPv6', reason: 'this node has no pod CIDR' });
  expect(readiness.reason()).toBe('IPv6: this node has no pod CIDR');
  readiness.observe(synced('IPv4', 3, 2));
  expect(readiness.reason()).toBe('IPv4: 1 of 3 routes are not in the kernel');
  readiness.observe(synced('IPv4', 3, 3));
  expect(readiness.reason()).toBeUndefined();
  readiness.observe({ kind: 'syncFailed', family: 'IPv4', error: new Error('no buffer space'), retryInMs: 1 });
  expect(readiness.reason()).toBe('IPv4: no buffer space');
});
