import { expect, it } from 'vitest';
import type { RouteEvent } from '../../routes/index.ts';
import type { Logger } from '../logger.ts';
import { logRouteEvents } from './observe.ts';

it('warns of routes that others had taken away, and of nothing else', () => {
  const warnings: unknown[] = [];
  const silent = () => {};
  const logger = {
    info: silent,
    debug: silent,
    warn: (...line: unknown[]) => warnings.push(line),
  } as unknown as Logger;
  const observe = logRouteEvents(logger);
  const synced = (operations: number, full = true) =>
    observe({
      kind: 'synced',
      family: 'IPv4',
      full,
      seconds: 0,
      operations,
      figures: { peers: {}, leftOut: 0 },
    } as RouteEvent);
  const disturbed = () => observe({ kind: 'disturbed', family: 'IPv4' });
  synced(5);
  disturbed();
  synced(0);
  synced(3);
  expect(warnings).toEqual([]);
  disturbed();
  synced(1, false);
  synced(2);
  synced(2);
  expect(warnings).toEqual([
    [{ family: 'IPv4', operations: 2 }, 'Routes of ours were gone, or not as they are meant; they are back'],
  ]);
});

it('tells why routes cannot be written once, until they are or the reason is another', () => {
  const lines: string[] = [];
  const told = (level: string) => (_facts: unknown, text: string) => void lines.push(`${level}: ${text.slice(0, 6)}`);
  const logger = { info: told('info'), debug: told('debug'), error: told('error') } as unknown as Logger;
  const observe = logRouteEvents(logger);
  const fail = (why: string) =>
    observe({ kind: 'syncFailed', family: 'IPv4', error: new Error(why), retryInMs: 1000 } as RouteEvent);
  for (const why of ['eth0 is down', 'eth0 is down', 'no link']) fail(why);
  const figures = { peers: {}, leftOut: 0 };
  observe({ kind: 'synced', family: 'IPv4', full: true, seconds: 0, operations: 1, figures } as RouteEvent);
  fail('no link');
  expect(lines.map((line) => line.split(':')[0])).toEqual(['error', 'debug', 'error', 'info', 'error']);
});
