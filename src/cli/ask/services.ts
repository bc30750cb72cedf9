import { type Command, InvalidArgumentError, Option } from 'commander';
import { showServices, showTopServices } from '../../agent/index.ts';
import { writeOut } from '../standard-output.ts';
import { addStatusFlags, type StatusFlags } from './status.ts';

interface Flags extends StatusFlags {
  readonly page: number;
  readonly top?: boolean;
}

/** `nodeplane services`: what of Services is served on this node, and why each endpoint is used or not. */
export function addServicesCommand(program: Command): void {
  const command = program
    .command('services')
    .description(
      'show which Services are served on this node; of a single one its addresses, endpoints with why each is used or not, and connections. Exit status 2 if parts are not served',
    )
    .argument('[name]', 'namespace/name of one, or a part of names, an address, a port')
    .addOption(new Option('--page <number>', 'of a list in pages').default(1).argParser(readPage))
    .option('--top', 'show which Services the tracked connections of this node were made to, the most first');
  addStatusFlags(command).action(async (name: string | undefined, flags: Flags) => {
    const { output, address, page, top = false } = flags;
    const json = output === 'json';
    if (top && name) command.error('error: --top shows all Services with tracked connections, and takes no name');
    const { stdout, exitCode } = top
      ? await showTopServices({ address, json })
      : await showServices({ address, json, name: name ?? '', page });
    writeOut(stdout);
    process.exitCode = exitCode;
  });
}

/** Throws InvalidArgumentError for what is no number of a page, from 1 on. */
function readPage(text: string): number {
  if (!/^[1-9]\d{0,6}$/.test(text)) throw new InvalidArgumentError('It has to be a number from 1 on.');
  return Number(text);
}
