import { expect, it } from 'vitest';
import { parseRule } from './parse-rule.ts';
import { ruleText } from './rule-text.ts';

it.each([
  '-s 10.0.0.0/8 ! -d 10.0.0.1/32 -p tcp -m tcp --dport 80 -j DNAT --to-destination 10.1.1.1:80',
  '-m comment --comment "two words, \\"quotes\\" and a \\\\ -j DROP" -g NEXT',
  '-m tcp --tcp-flags FIN,SYN NONE',
  '',
])('says a rule as it is printed: %s', (text) => {
  expect(ruleText(parseRule(text))).toBe(text);
});
