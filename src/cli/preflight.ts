import type { Command } from 'commander';
import { preflightNode } from '../agent/index.ts';
import { reportJson, reportText } from '../preflight/index.ts';
import { readAgentFlags } from './agent-flags.ts';
import { asksForHelp } from './asks-for-help.ts';
import { writeErr, writeOut } from './standard-output.ts';
import { VERSION } from './version.ts';

/** Exit statuses: something fails; the command line cannot be used. */
const FAILS = 1;
const USAGE = 2;

const MODES = ['iptables', 'nftables', 'ipvs'] as const;

/** What of the command line is not the agent's. */
interface PreflightFlags {
  readonly output: 'text' | 'json';
  readonly strict: boolean;
  readonly presentMode: (typeof MODES)[number] | undefined;
  /** The agent's. */
  readonly rest: readonly string[];
}

/** `nodeplane preflight`: what stands in the way of the agent on this node. Changes nothing. */
export function addPreflightCommand(program: Command): void {
  program
    .command('preflight')
    .description(
      'look whether the agent can work on this node, and what would change; changes nothing (exit status 1: something fails, 2: wrong flags)',
    )
    // What follows are the flags of the agent, and it reads them.
    .allowUnknownOption()
    .passThroughOptions()
    .argument(
      '[flags...]',
      '-o json, --strict (warnings fail too), --present-mode iptables|nftables|ipvs (what Services work by now), and the flags of the agent on this node: see "nodeplane agent --help"',
    )
    .action((_flags: string[], _options: object, command: Command) =>
      asksForHelp(command.args) ? command.help() : runPreflight(command.args),
    );
}

/** Looks, prints, and sets the exit status. @param argv what follows the command's name */
async function runPreflight(argv: readonly string[]): Promise<void> {
  const flags = readFlags(argv);
  if (typeof flags === 'string') return usage(flags);
  const ofAgent = readAgentFlags(flags.rest);
  if (typeof ofAgent === 'string') return usage(ofAgent);
  const { strict, presentMode, output } = flags;
  const { config, messages } = ofAgent;
  const warnings = messages.flatMap(({ level, text }) => (level === 'warn' ? [text] : []));
  const report = await preflightNode({ config, warnings, strict, presentMode, version: VERSION });
  writeOut(output === 'json' ? reportJson(report) : reportText(report));
  if (report.result === 'fails') process.exitCode = FAILS;
}

/** @returns what is wrong with them, if anything. */
function readFlags(argv: readonly string[]): PreflightFlags | string {
  const rest: string[] = [];
  let output: string = 'text';
  let strict = false;
  let presentMode: PreflightFlags['presentMode'];
  for (let at = 0; at < argv.length; at++) {
    const word = argv[at]!;
    const [, name, given] = /^(-o|--output|--present-mode)(?:=(.*))?$/s.exec(word) ?? [];
    if (word === '--strict') strict = true;
    else if (name === undefined) rest.push(word);
    else {
      const value = given ?? argv[++at];
      if (name !== '--present-mode') output = value ?? '';
      else {
        presentMode = MODES.find((mode) => mode === value);
        if (!presentMode) return `--present-mode is one of ${MODES.join(', ')}, found "${value ?? ''}"`;
      }
    }
  }
  if (output !== 'text' && output !== 'json') return `--output is text or json, found "${output}"`;
  return { output, strict, presentMode, rest };
}

function usage(what: string): void {
  writeErr(`nodeplane preflight: ${what}\n`);
  process.exitCode = USAGE;
}
