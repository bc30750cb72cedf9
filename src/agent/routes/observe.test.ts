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
