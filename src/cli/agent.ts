import type { Command } from 'commander';
import { runProxy } from './run-proxy.ts';

/** `nodeplane agent`: runs until SIGTERM or SIGINT; the rules stay in the kernel. Its flags are kube-proxy's and ours. */
export function addAgentCommand(program: Command): void {
  program
    .command('agent')
    .description('run the node agent: makes Services work, until it is told to stop; its rules stay in place then')
    // The command line is read as kube-proxy reads its own, --help and --version included.
    .helpOption(false)
    .allowUnknownOption()
    .passThroughOptions()
    .argument('[flags...]', 'see "nodeplane agent --help"')
    .action((_flags: string[], _options: object, command: Command) => runProxy('nodeplane agent', command.args));
}
