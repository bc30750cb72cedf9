import { pino } from 'pino';
import { Registry } from 'prom-client';
import { expect, it } from 'vitest';
import { requestLog } from './request-log.ts';

it('logs a failure with one `msg`, the line’s own, and the plugin’s words beside it', () => {
  const lines: string[] = [];
  const logger = pino({ base: null }, { write: (line: string) => void lines.push(line) });
  const served = requestLog({ registry: new Registry(), logger, kept: () => 0 });
  served({
    environment: { CNI_COMMAND: 'ADD', CNI_CONTAINERID: 'c', CNI_ARGS: 'K8S_POD_NAMESPACE=shop;K8S_POD_NAME=web' },
    answer: { exitCode: 1, stdout: JSON.stringify({ code: 11, msg: 'no address left', details: 'of 254' }) },
    config: '{}',
    seconds: 0.5,
    remarks: '',
  });
  expect(lines).toHaveLength(1);
  expect(lines[0]!.match(/"msg":/g)).toHaveLength(1);
  expect(JSON.parse(lines[0]!)).toMatchObject({
    msg: 'CNI ADD failed',
    pod: 'shop/web',
    code: 11,
    error: 'no address left',
    details: 'of 254',
  });
});
