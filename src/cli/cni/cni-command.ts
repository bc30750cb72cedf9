import type { Command } from 'commander';
import { runCni } from './run-cni.ts';

/** `nodeplane cni`: the CNI plugin inside the big program, where only one file shall be installed. */
export function addCniCommand(program: Command): void {
  program
    .command('cni')
    .description('serve one CNI request, as dist/nodeplane-cni does: CNI_* in the environment, configuration on stdin')
    .action(() => runCni([]));
}
