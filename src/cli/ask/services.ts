import type { Command } from 'commander';
import { showServices, showTopServices } from '../../agent/index.ts';
import { writeOut } from '../standard-output.ts';
import { addStatusFlags, type StatusFlags } from './status.ts';

interface Flags extends StatusFlags {
  readonly page: string;
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
    .option('--page <number>', 'of a list in pages', '1')
    .option('--top', 'show which Services the tracked connections of this node were made to, the most first');
  addStatusFlags(command).action(async (name: string | undefined, flags: Flags) => {
    const { output, address, page, top = false } = flags;
    const json = output === 'json';
    const { stdout, exitCode } = top
      ? await showTopServices({ address, json })
      : await showServices({ address, json, name: name ?? '', page: Number(page) });
    writeOut(stdout);
    process.exitCode = exitCode;
  });
}
