import { execFileSync } from 'node:child_process';
import { expect, it } from 'vitest';
import { plainText } from '../json.ts';
import { shellWord } from './shell-word.ts';

it.each([
  'eth0',
  '/run/netns/cni-1f',
  'a b',
  "it's",
  '$(reboot)',
  'c;reboot;',
  '-x',
  '[fd00::1]:80',
  'a   # b',
  'two\nlines',
  "\x1b[31mred\\'s",
  'turned \u202e round',
  '',
])('%j is one word, shown as it is', (text) => {
  const word = shellWord(text);
  expect(execFileSync('bash', ['-c', `printf %s ${word}`], { encoding: 'utf8' })).toBe(text);
  expect(plainText(word)).toBe(word);
});

it('holds nothing that begins a comment', () => {
  expect(shellWord('a   # b')).not.toContain('#');
});
