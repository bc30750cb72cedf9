import { pino } from 'pino';
import { expect, it } from 'vitest';
import { NodeplaneError } from '../../core/index.ts';
import { reportHealthCheckFailures } from './health-check-failures.ts';

it('logs the failure and records kube-proxy’s Event on the Service', () => {
  const lines: string[] = [];
  const logger = pino({ base: null }, { write: (line: string) => void lines.push(line) });
  const recorded: unknown[] = [];
  const check = { serviceName: 'shop/web', port: 30999, localEndpoints: 1 };
  const error = new NodeplaneError('ERR_HEALTH_CHECK_PORT', 'Listen on 0.0.0.0:30999: EADDRINUSE');

  reportHealthCheckFailures(logger, { record: (...event) => recorded.push(event) })(check, error);
  expect(recorded).toEqual([
    [
      { kind: 'Service', namespace: 'shop', name: 'web' },
      {
        type: 'Warning',
        reason: 'FailedToStartServiceHealthcheck',
        action: 'Listen',
        note: 'Listen on 0.0.0.0:30999: EADDRINUSE',
        once: 'node',
      },
    ],
  ]);

  reportHealthCheckFailures(logger, undefined)(check, error);
  expect(lines.map((line) => JSON.parse(line))).toEqual(
    Array(2).fill(
      expect.objectContaining({
        level: 50,
        service: 'shop/web',
        port: 30999,
        err: expect.objectContaining({ message: error.message }),
      }),
    ),
  );
});
