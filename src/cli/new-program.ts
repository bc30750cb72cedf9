import { Command } from 'commander';
import { writeErr, writeOut } from './standard-output.ts';
import { VERSION } from './version.ts';

/** `nodeplane` without a command. Nothing is run before `parseAsync`. */
export function newProgram(): Command {
  return (
    new Command('nodeplane')
      .description('One agent per Kubernetes node: pod networking (CNI) and Services (a kube-proxy replacement).')
      .version(VERSION, '--version', 'print the version')
      .helpOption('-h, --help', 'print this help')
      .configureOutput({ writeOut, writeErr })
      .showHelpAfterError('(run with --help for the flags)')
      // What follows a command's name is the command's.
      .enablePositionalOptions()
  );
}
