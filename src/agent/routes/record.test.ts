import { expect, it } from 'vitest';
import type { RouteEvent } from '../../routes/index.ts';
import { recordRouteEvents } from './record.ts';

function world() {
  const recorded: unknown[][] = [];
  const observe = recordRouteEvents({ record: (...args) => void recorded.push(args) }, 'n1');
  const leftOut = (name: string, reason: string | undefined) =>
    observe({ kind: 'leftOut', family: 'IPv4', name, reason } satisfies RouteEvent);
  return { recorded, leftOut };
}

it('an Event on the Node that is left out says from where, in which family and why', () => {
  const { recorded, leftOut } = world();
  leftOut('n2', 'its pod CIDR overlaps ours');
  expect(recorded).toEqual([
    [
      { kind: 'Node', name: 'n2', namespace: '' },
      {
        type: 'Warning',
        reason: 'PodsNotRouted',
        action: 'RouteToPods',
        note: 'Its pods cannot be reached from node n1 in IPv4: its pod CIDR overlaps ours',
        once: 'cluster',
        cause: 'IPv4: its pod CIDR overlaps ours',
      },
    ],
  ]);
});

it('ten Nodes at a time have one, out of ten thousand; who is in order again makes room', () => {
  const { recorded, leftOut } = world();
  for (let number = 0; number < 10_000; number++) leftOut(`n${number}`, 'not on the link');
  expect(recorded).toHaveLength(10);
  leftOut('n3', 'another reason');
  expect(recorded).toHaveLength(11);
  leftOut('n5', undefined);
  leftOut('n9000', 'not on the link');
  leftOut('n9001', 'not on the link');
  expect(recorded.slice(11)).toMatchObject([[{ name: 'n9000' }, {}]]);
});
