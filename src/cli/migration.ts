import type { Command } from 'commander';
import { migrationReport, migrationText } from '../agent/index.ts';
import { jsonText } from '../core/index.ts';
import { readAgentFlags, readOutput } from './agent-flags.ts';
import { asksForHelp } from './asks-for-help.ts';
import { writeErr, writeOut } from './standard-output.ts';

/** Exit status of a command line that cannot be used. */
const USAGE = 2;

/** `nodeplane migration`: where this node stands between another network and nodeplane. Changes nothing. */
export function addMigrationCommand(program: Command): void {
  program
    .command('migration')
    .description(
      'show what this node came from, how far it is, what to do next and the way back, by its kernel and its Node object; changes nothing',
    )
    // What follows are the flags of the agent, and it reads them.
    .allowUnknownOption()
    .passThroughOptions()
    .argument('[flags...]', '-o json, and the flags of the agent on this node: see "nodeplane agent --help"')
    .action((_flags: string[], _options: object, command: Command) =>
      asksForHelp(command.args) ? command.help() : runMigration(command.args),
    );
}

/** Looks and prints. @param argv what follows the command's name */
async function runMigration(argv: readonly string[]): Promise<void> {
  const { output, rest } = readOutput(argv);
  if (output !== 'text' && output !== 'json') return usage(`--output is text or json, found "${output}"`);
  const flags = readAgentFlags(rest);
  if (typeof flags === 'string') return usage(flags);
  const report = await migrationReport(flags.config);
  writeOut(output === 'json' ? jsonText(report) : migrationText(report));
}

function usage(what: string): void {
  writeErr(`nodeplane migration: ${what}\n`);
  process.exitCode = USAGE;
}
