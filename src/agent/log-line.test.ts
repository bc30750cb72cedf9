import { pino } from 'pino';
import { describe, expect, it } from 'vitest';
import { NodeplaneError } from '../core/index.ts';
import { textLine } from './log-line.ts';

/** What pino makes of a call, by way of the text form; the time is replaced. */
function logged(fields: object, msg: string, withStacks = false): string {
  let line = '';
  const options = { base: null, formatters: { level: (label: string) => ({ level: label }) } };
  const timestamp = () => ',"time":"2026-01-02T03:04:05.678Z"';
  const logger = pino({ ...options, timestamp }, { write: (json: string) => (line += textLine(json, withStacks)) });
  logger.warn(fields, msg);
  return line;
}

const HEAD = '2026-01-02T03:04:05.678Z WARN ';

describe('a line for people', () => {
  it.each<[object, string]>([
    [{}, 'Said'],
    [{ family: 'IPv4', full: true, seconds: 0.5 }, 'Said family=IPv4 full=true seconds=0.5'],
    [
      { seconds: 1.930981219999, retryInMs: 125.23743113761138, port: 65535 },
      'Said seconds=1.93 retryInMs=125 port=65535',
    ],
    [
      { services: ['shop/web', 'shop/dns'], problems: ['a b', 'c'], numbers: [1] },
      'Said services=shop/web,shop/dns problems="a b; c" numbers=[1]',
    ],
    [{ rules: { nat: 3 }, none: null }, 'Said rules={"nat":3} none=null'],
    [{ path: '/a b', empty: '', equal: 'a=b' }, 'Said path="/a b" empty="" equal="a=b"'],
    [{ name: 'x\nERROR y\u001b[31m\u202e\u0085' }, 'Said name="x\\nERROR y\\u001b[31m\\u202e\\u0085"'],
  ])('%j', (fields, expected) => {
    expect(logged(fields, 'Said')).toBe(`${HEAD} ${expected}\n`);
  });

  it('cannot be broken by its message', () => {
    expect(logged({}, 'one\ntwo\u001b')).toBe(`${HEAD} one\\u000atwo\\u001b\n`);
  });

  it('has of an error its message, its causes and its code', () => {
    const err = new NodeplaneError('ERR_EXEC', 'Cannot run it', { cause: new Error('ENOENT: no such file') });
    expect(logged({ err, family: 'IPv4' }, 'Failed')).toBe(
      `${HEAD} Failed family=IPv4 err="Cannot run it: ENOENT: no such file" code=ERR_EXEC\n`,
    );
    const [first, ...stack] = logged({ err }, 'Failed', true).trimEnd().split('\n');
    expect(first).toMatch(/^2026.* WARN {2}Failed err=/);
    expect(stack.length).toBeGreaterThan(0);
    for (const call of stack) expect(call).toMatch(/^ {4}at /);
  });
});
