import fc from 'fast-check';
import { expect, it } from 'vitest';
import { RequestQueue, type RequestScope } from './request-queue.ts';

const pod = (attachment: string, network = 'net'): RequestScope => ({ network, attachment, wholeNetwork: false });
const gc = (network = 'net'): RequestScope => ({ network, attachment: undefined, wholeNetwork: true });

/** Enters scopes and tells which of them have their turn. */
function enterAll(queue: RequestQueue, scopes: readonly RequestScope[]) {
  const begun = new Set<number>();
  const tickets = scopes.map((scope, i) => {
    const ticket = queue.enter(scope);
    void ticket.turn.then(() => begun.add(i));
    return ticket;
  });
  const running = async () => {
    await Promise.resolve();
    return [...begun].sort((a, b) => a - b);
  };
  return { leave: (i: number) => tickets[i]!.leave(), running };
}

it('lets requests about the same attachment go one after the other, others beside them', async () => {
  const { leave, running } = enterAll(new RequestQueue(9), [pod('a'), pod('a'), pod('b'), pod('a', 'other')]);
  expect(await running()).toEqual([0, 2]);
  leave(0);
  expect(await running()).toEqual([0, 1, 2]);
  leave(1);
  expect(await running()).toEqual([0, 1, 2, 3]);
});

it('gives a GC its network alone, and lets nobody overtake it', async () => {
  const { leave, running } = enterAll(new RequestQueue(9), [pod('a'), gc(), pod('b'), pod('c', 'other'), gc('third')]);
  expect(await running()).toEqual([0, 3, 4]);
  leave(0);
  expect(await running()).toEqual([0, 1, 3, 4]);
  leave(1);
  expect(await running()).toEqual([0, 1, 2, 3, 4]);
});

it('begins no more than the limit at once, and forgets who gives up', async () => {
  const queue = new RequestQueue(2);
  const { leave, running } = enterAll(queue, [pod('a'), pod('b'), pod('c'), pod('d')]);
  expect(await running()).toEqual([0, 1]);
  leave(2);
  leave(2);
  leave(1);
  expect(await running()).toEqual([0, 1, 3]);
  expect(queue.length).toBe(2);
});

it('gives everybody a turn in the end, and never two that exclude each other', async () => {
  const scope = fc.record({
    network: fc.constantFrom('n', 'm'),
    attachment: fc.option(fc.constantFrom('a', 'b', 'c'), { nil: undefined }),
    wholeNetwork: fc.boolean(),
  });
  await fc.assert(
    fc.asyncProperty(fc.array(scope, { maxLength: 12 }), fc.integer({ min: 1, max: 4 }), async (scopes, limit) => {
      const { leave, running } = enterAll(new RequestQueue(limit), scopes);
      const left = new Set<number>();
      while (left.size < scopes.length) {
        const now = (await running()).filter((i) => !left.has(i));
        expect(now.length).toBeGreaterThan(0);
        expect(now.length).toBeLessThanOrEqual(limit);
        for (const i of now) {
          for (const j of now.filter((other) => other > i)) {
            const [a, b] = [scopes[i]!, scopes[j]!];
            expect(a.attachment !== undefined && a.attachment === b.attachment).toBe(false);
            expect(a.network === b.network && (a.wholeNetwork || b.wholeNetwork)).toBe(false);
          }
        }
        leave(now[0]!);
        left.add(now[0]!);
      }
    }),
  );
});
