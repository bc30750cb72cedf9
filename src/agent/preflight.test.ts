import { pino } from 'pino';
import { expect, it } from 'vitest';
import { preflight } from './preflight.ts';

const logger = pino({ level: 'silent' });

it('tells the families of the machine, and refuses a process without the capability', () => {
  expect(preflight(logger, true)).toContain('IPv4');
  expect(() => preflight(logger, false)).toThrow('CAP_NET_ADMIN');
});
