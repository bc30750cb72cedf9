import { pino } from 'pino';
import { expect, it } from 'vitest';
import { FakeClock } from '../../../../test/fakes/fake-clock.ts';
import { NodeplaneError } from '../../../core/index.ts';
import type { PreparedMode } from '../../../proxy/index.ts';
import type { Exec } from '../../../sys/index.ts';
import { type PreparationOptions, preparePatiently } from './prepare-patiently.ts';

const locked = (by: number) => new NodeplaneError('ERR_IPTABLES_LOCK', `held by process ${by}`);
const missing = new NodeplaneError('ERR_IPTABLES', 'no NAT');
const prepared: PreparedMode = {
  families: ['IPv4'],
  unserved: new Map(),
  begin: () => () => {
    throw new Error('not asked for');
  },
};

/** Looks whose outcomes are given, one after the other; the last one stays. */
function looking(outcomes: (PreparedMode | Error)[], failureIsFatal = true) {
  const clock = new FakeClock();
  const controller = new AbortController();
  const lines: { level: number; err?: { message: string } }[] = [];
  const logger = pino({ level: 'info' }, { write: (line: string) => void lines.push(JSON.parse(line)) });
  let looks = 0;
  const exec: Exec = async (_program, _args, options) => ({ status: 0, stdout: '', stderr: String(options?.signal) });
  const attempt: PreparationOptions['attempt'] = async () => {
    const outcome = outcomes[Math.min(looks++, outcomes.length - 1)]!;
    if (outcome instanceof Error) throw outcome;
    return outcome;
  };
  const { signal } = controller;
  const found = preparePatiently({ attempt, exec, failureIsFatal, clock, logger, signal });
  found.catch(() => {});
  return { clock, controller, lines, found, looks: () => looks };
}

it('waits for a lock as long as it takes, and names each holder once', async () => {
  const { clock, found, lines } = looking([...Array(20).fill(locked(7)), ...Array(20).fill(locked(8)), prepared]);
  await clock.advance(3_600_000);
  expect(await found).toBe(prepared);
  expect(lines.map(({ err }) => err?.message)).toEqual(['held by process 7', 'held by process 8', undefined]);
});

it('notices within 10 s that a lock is free', async () => {
  const outcomes = [...Array(1000).fill(locked(7))];
  const { clock, found } = looking(outcomes);
  await clock.advance(600_000);
  outcomes.fill(prepared as never);
  await clock.advance(10_000);
  expect(await found).toBe(prepared);
});

it('gives up over what is missing, unless the agent has other work', async () => {
  await expect(looking([missing]).found).rejects.toBe(missing);
  const { clock, found, lines } = looking([missing, missing, prepared], false);
  await clock.advance(60_000);
  expect(await found).toBe(prepared);
  expect(lines.map(({ level }) => level)).toEqual([50, 30]);
});

it('ends when the agent does, also in the middle of a wait', async () => {
  const { clock, controller, found, looks } = looking([locked(7)]);
  await clock.advance(0);
  controller.abort();
  expect(await found).toBeUndefined();
  await clock.advance(600_000);
  expect(looks()).toBe(1);
});

it('says nothing of families that a look did not find because it was cut off', async () => {
  const oneFamily = { ...prepared, unserved: new Map([['IPv6', 'it was cancelled']]) } as PreparedMode;
  const { controller, found, lines } = looking([oneFamily]);
  controller.abort();
  expect(await found).toBeUndefined();
  expect(lines).toEqual([]);
  const told = looking([oneFamily]);
  await told.found;
  expect(told.lines).toHaveLength(1);
});
