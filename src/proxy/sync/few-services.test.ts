import { expect, it } from 'vitest';
import type { ServicePortPlan } from '../plan/index.ts';
import { fewServices } from './few-services.ts';

const ports = (...services: string[]) => services.map((serviceName) => ({ serviceName }) as ServicePortPlan);

it('names each Service once, those that go too, and none where they are many', () => {
  expect(fewServices({ upserted: ports('a/b', 'a/b', 'a/c'), removed: ports('a/c', 'a/d') })).toEqual([
    'a/b',
    'a/c',
    'a/d',
  ]);
  expect(fewServices({ upserted: ports('1', '2', '3'), removed: ports('4', '5', '6') })).toEqual([]);
});
