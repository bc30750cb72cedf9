import { expect, it } from 'vitest';
import { parseQueues } from './packet-queues.ts';

it('reads the numbers of queues', () => {
  const text =
    '    7   3012     0 2 65531     0     0        0  1\n65535   3013     1 2   128     0     0        4  1\n';
  expect([...parseQueues(text)]).toEqual([7, 65_535]);
  expect([...parseQueues('')]).toEqual([]);
});
