import { expect, it } from 'vitest';
import { unknownPod } from './find-target.ts';

it.each([
  [[], 'the pod shop/web-1. Of other pods ask'],
  [['shop/web-2'], 'the pod shop/web-1; did you mean shop/web-2? Of other pods ask'],
])('a pod that nobody knows, beside %j', (near, text) => {
  expect(unknownPod({ name: 'shop/web-1', near })).toContain(text);
});
