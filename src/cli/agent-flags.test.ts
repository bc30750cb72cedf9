import { expect, it } from 'vitest';
import { readAgentFlags, readOutput } from './agent-flags.ts';

it('reads what an agent would', () => {
  expect(readAgentFlags(['--proxy-mode', 'nftables', '--hostname-override', 'n1'])).toMatchObject({
    config: { nodeName: 'n1' },
  });
});

it('says what is wrong in one line, and not how the agent is called', () => {
  expect(readAgentFlags(['--bogus'])).toBe('Error: unknown flag: --bogus (--help shows all flags)');
  const two = readAgentFlags(['--cluster-cidr=x', '--metrics-bind-address=y']);
  expect(two).toMatch(/^nodeplane agent: command failed: [^;\n]+; [^\n]+$/);
  expect(readAgentFlags(['--cleanup'])).toBe('they ask the agent for something else (cleanup)');
});

it.each([
  [['check', '-o', 'json', '--cni'], 'json', ['check', '--cni']],
  [['--output=yaml', '--cni'], 'yaml', ['--cni']],
  [['--cni', '-o'], '', ['--cni']],
  [['--cni'], 'text', ['--cni']],
])('of %j the form of the output is "%s"', (argv, output, rest) => {
  expect(readOutput(argv)).toEqual({ output, rest });
});
