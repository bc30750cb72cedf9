import type { Command } from 'commander';
import { checkAddressesOf, ipamCheckText, ipamText, showAddresses } from '../agent/index.ts';
import type { KubeProxyConfig } from '../config/index.ts';
import { jsonText, NodeplaneError } from '../core/index.ts';
import { readAgentFlags, readOutput } from './agent-flags.ts';
import { asksForHelp } from './asks-for-help.ts';
import { writeOut } from './standard-output.ts';

/** Something is found: neither success nor a failure of the command, whose status is 1. */
const FOUND = 2;

/** `nodeplane ipam`: the pods' addresses, as the agent with the same flags on this node sees them. */
export function addIpamCommand(program: Command): void {
  program
    .command('ipam')
    .description(
      'show pools, the blocks of this node and its addresses used and free; "ipam check" looks for lost ones (exit status 2: found some)',
    )
    // What follows are the flags of the agent, and it reads them.
    .allowUnknownOption()
    .passThroughOptions()
    .argument('[words...]', 'check, -o json, and the flags of the agent on this node: see "nodeplane agent --help"')
    .action((_words: string[], _options: object, command: Command) =>
      asksForHelp(command.args) ? command.help() : runIpam(command.args),
    );
}

/**
 * Shows or checks the addresses of this node, and sets the exit status.
 *
 * @param argv `check` or nothing, `-o json` or `--json`, and the agent's flags
 * @throws ERR_CONFIG for flags that cannot be used; what showing and checking fail with
 */
async function runIpam(argv: readonly string[]): Promise<void> {
  const { output, rest } = readOutput(argv.map((word) => (word === '--json' ? '--output=json' : word)));
  if (output !== 'text' && output !== 'json') {
    throw new NodeplaneError('ERR_CONFIG', `Cannot use these flags: --output is text or json, found "${output}"`);
  }
  const isJson = output === 'json';
  const isCheck = rest[0] === 'check';
  const config = configOf(isCheck ? rest.slice(1) : rest);
  if (isCheck) {
    const check = await checkAddressesOf(config);
    writeOut(isJson ? jsonText(check) : ipamCheckText(check));
    if (check.findings.length > 0) process.exitCode = FOUND;
    else if (check.notLookedAt.length > 0) process.exitCode = 1;
  } else {
    const report = await showAddresses(config);
    writeOut(isJson ? jsonText(report) : ipamText(report));
  }
}

function configOf(argv: readonly string[]): KubeProxyConfig {
  const flags = readAgentFlags(argv);
  if (typeof flags !== 'string') return flags.config;
  throw new NodeplaneError('ERR_CONFIG', `Cannot use these flags: ${flags}`);
}
