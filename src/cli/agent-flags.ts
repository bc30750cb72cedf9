import { hostname } from 'node:os';
import { type KubeProxyConfig, readCommandLine } from '../config/index.ts';
import { readGivenFile } from '../core/index.ts';
import { VERSION } from './version.ts';

/** What an agent's flags say. */
export interface AgentFlags {
  readonly config: KubeProxyConfig;
  readonly messages: ReturnType<typeof readCommandLine>['messages'];
}

/**
 * Reads the flags of the agent on this node, for a command that takes them too.
 *
 * @returns in one line what is wrong with them, if anything, without how `nodeplane agent` is called: that is another command
 */
export function readAgentFlags(argv: readonly string[]): AgentFlags | string {
  const outcome = readCommandLine(argv, {
    program: 'nodeplane agent',
    version: VERSION,
    readFile: (path) => readGivenFile(path).toString('utf8'),
    hostname: hostname(),
  });
  if (outcome.action === 'run') return outcome;
  if (outcome.action !== 'refuse') return `they ask the agent for something else (${outcome.action})`;
  const { stderr } = outcome.output;
  const reason = stderr.slice(stderr.lastIndexOf('\nError: ') + 1).trim();
  return reason.replace(/:\s*\n\s*/, ': ').replace(/\s*\n\s*/g, '; ');
}

/**
 * The form a command is to print in, `-o json` as well as `--output=json`, of a command line whose other words are the agent's flags.
 *
 * @returns what was given, also if there is no such form, and the other words; without the flag `text`
 */
export function readOutput(argv: readonly string[]): { readonly output: string; readonly rest: readonly string[] } {
  const at = argv.findIndex((word) => /^(?:-o|--output)(?:=|$)/.test(word));
  if (at < 0) return { output: 'text', rest: argv };
  const [, given] = /=(.*)$/s.exec(argv[at]!) ?? [];
  return { output: given ?? argv[at + 1] ?? '', rest: argv.toSpliced(at, given === undefined ? 2 : 1) };
}
