import { chmodSync, mkdirSync, mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pino } from 'pino';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { FakeClock } from '../../../test/fakes/fake-clock.ts';
import { NodeClaim } from './node-claim.ts';

let folder: string;
let clock: FakeClock;
let lines: { level: number; msg: string }[];

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'nodeplane-node-claim-'));
  clock = new FakeClock();
  lines = [];
});
afterEach(() => rmSync(folder, { recursive: true }));

function open(directory = folder, mayLack = false): NodeClaim {
  const logger = pino({ level: 'info' }, { write: (line: string) => void lines.push(JSON.parse(line)) });
  return NodeClaim.open({ directory, mayLack, clock, logger });
}

it('gives the node to one, names it, and to the next within a tenth of a second of its end', async () => {
  const [first, second] = [open(), open()];
  expect(first.tryTake()).toBe(true);
  expect(second.tryTake()).toBe(false);
  expect(second.holder()).toContain(String(process.pid));
  let taken: boolean | undefined;
  const taking = second.take(new AbortController().signal).then((outcome) => {
    taken = outcome;
  });
  await clock.advance(60_000);
  expect(taken).toBeUndefined();
  first.release();
  await clock.advance(100);
  await taking;
  expect(taken).toBe(true);
  second.release();
  expect(readdirSync(folder)).toEqual([`agent-${statSync('/proc/self/ns/net').ino}.lock`]);
});

it('ends waiting when it is told to', async () => {
  const [first, second] = [open(), open()];
  first.tryTake();
  const controller = new AbortController();
  const taking = second.take(controller.signal);
  await clock.advance(500);
  controller.abort();
  expect(await taking).toBe(false);
  first.release();
});

it('goes without a lock where there cannot be one, and says what that means', () => {
  // What a read-only root file system or a missing mount looks like to mkdir(2).
  expect(open('/sys/nodeplane', true).tryTake()).toBe(true);
  expect(open('/sys/nodeplane', false).tryTake()).toBe(true);
  expect(lines.map(({ level }) => level)).toEqual([30, 40]);
  expect(lines[0]!.msg).toContain('mount the node\'s own "/sys/nodeplane" there');
  expect(open('').tryTake()).toBe(true);
  expect(lines).toHaveLength(2);
});

it('refuses a directory in which others could keep it waiting for ever', () => {
  const open777 = join(folder, 'open');
  mkdirSync(open777);
  chmodSync(open777, 0o777);
  expect(() => open(open777)).toThrow(/mode 0777.*name another one/);
});
