import { expect, it } from 'vitest';
import type { Logger } from '../logger.ts';
import { LeftOutLog } from './left-out-log.ts';

function world() {
  const lines: [string, Record<string, unknown>, string][] = [];
  const write = (level: string) => (facts: Record<string, unknown>, text: string) => lines.push([level, facts, text]);
  const logger = { info: write('info'), warn: write('warn') } as unknown as Logger;
  return { lines, log: new LeftOutLog(logger, 'IPv4') };
}

it('writes a line for each of a few Nodes, when the sync is done, and once', () => {
  const { lines, log } = world();
  log.add('n1', 'its address is taken');
  log.add('n2', undefined);
  expect(lines).toEqual([]);
  log.write();
  log.write();
  expect(lines).toEqual([
    [
      'warn',
      { family: 'IPv4', node: 'n1', reason: 'its address is taken' },
      'The pods of a Node cannot be reached from here; all others can',
    ],
    ['info', { family: 'IPv4', node: 'n2' }, 'The Node is not left out any more'],
  ]);
});

it('writes one line for thousands that share a reason, and one when it is over', () => {
  const { lines, log } = world();
  for (let n = 0; n < 5000; n++) log.add(`n${n}`, 'no carrier');
  log.write();
  for (let n = 0; n < 5000; n++) log.add(`n${n}`, undefined);
  log.write();
  const nodes = Array.from({ length: 20 }, (_, n) => `n${n}`);
  expect(lines).toEqual([
    [
      'warn',
      { family: 'IPv4', count: 5000, nodes, reasons: ['no carrier'] },
      'The pods of many Nodes cannot be reached from here',
    ],
    ['info', { family: 'IPv4', count: 5000, nodes }, 'Many Nodes are not left out any more'],
  ]);
});
