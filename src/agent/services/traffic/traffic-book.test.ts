import { expect, it } from 'vitest';
import { samplePort } from '../../../../test/samples/sample-plan.ts';
import { NO_TRAFFIC, TrafficBook } from './traffic-book.ts';

const ports = [1, 2, 3, 4].map((n) => samplePort({ name: `a/s${n}`, clusterIp: `10.96.0.${n}`, port: 80 }));

/** Takes readings of the first ports with so many connections each. */
function take(book: TrafficBook, ...connections: number[]): void {
  book.take(connections.map((n, i) => ({ port: ports[i]!, counts: { ...NO_TRAFFIC, connections: n } })));
}
const lines = (book: TrafficBook) =>
  Object.fromEntries([...book.lines()].map(({ port, counts }) => [port?.name ?? 'other', counts.connections]));

it('shows every port while there are no more than lines, from what they had when they came', () => {
  const book = new TrafficBook(2);
  take(book, 0, 5);
  take(book, 3, 7);
  expect(lines(book)).toEqual({ 'a/s1': 3, 'a/s2': 7, other: 0 });
  expect(book.hidden).toBe(0);
});

it('shows the busiest and sums up the others; whoever takes a line begins it at 0, and nothing counts twice', () => {
  const book = new TrafficBook(2);
  take(book, 1, 2, 3, 4);
  expect(lines(book)).toEqual({ 'a/s4': 4, 'a/s3': 3, other: 3 });
  expect(book.hidden).toBe(2);
  take(book, 101, 2, 3, 4);
  expect(lines(book)).toEqual({ 'a/s1': 0, 'a/s4': 4, other: 103 });
  take(book, 111, 2, 5, 6);
  expect(lines(book)).toEqual({ 'a/s1': 10, 'a/s4': 6, other: 105 });
});

it('leaves a line to who has it unless another is clearly busier', () => {
  const book = new TrafficBook(1);
  take(book, 10, 0);
  for (let i = 1; i < 20; i++) {
    take(book, 10 + 10 * i, 15 * i);
    expect(Object.keys(lines(book))).toEqual(['a/s1', 'other']);
  }
});

it('forgets a port that is gone, and takes less than before for a new beginning', () => {
  const book = new TrafficBook(2);
  take(book, 10, 20);
  take(book, 10);
  expect(lines(book)).toEqual({ 'a/s1': 10, other: 0 });
  take(book, 4, 1);
  expect(lines(book)).toEqual({ 'a/s1': 14, 'a/s2': 1, other: 0 });
});
