import { expect, it } from 'vitest';
import { readAgentAddress } from './agent-address.ts';

it.each([
  ['127.0.0.1:10249', '127.0.0.1:10249'],
  ['[::1]:10249', '[::1]:10249'],
  ['localhost:10249', '127.0.0.1:10249'],
])('the agent is asked at %s', (text, address) => {
  expect(readAgentAddress(text)).toBe(address);
});

it.each([
  '',
  ':10249',
  '127.0.0.1',
  '127.0.0.1:0',
  '127.0.0.1:99999',
  'node-1:10249',
  '127.0.0.1:10249/x',
  '::1:10249',
  'http://127.0.0.1:10249',
])('an agent is not asked at "%s"', (text) => {
  expect(() => readAgentAddress(text)).toThrow('ADDRESS:PORT');
});
