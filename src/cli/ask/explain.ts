import { hostname } from 'node:os';
import { type Command, Option } from 'commander';
import { explainHere, type readKnowledge } from '../../agent/index.ts';
import { NODE_PATHS, NodeplaneError } from '../../core/index.ts';
import { writeErr, writeOut } from '../standard-output.ts';

interface Flags {
  readonly from?: string;
  readonly proto?: string;
  readonly output: 'text' | 'json';
  readonly verbose?: boolean;
  readonly probe?: boolean;
  readonly agentLockDir: string;
  readonly manifests?: string;
  readonly node?: string;
}

/** Reads what is known from manifests. It plans as an agent does, with most of an agent's code. */
export type ReadOffline = typeof readKnowledge;

/** `nodeplane explain`: whether a connection works from this node, and if not, why. */
export function addExplainCommand(program: Command, readOffline?: ReadOffline): void {
  program
    .command('explain')
    .description(
      'say whether a connection works from this node, and if not, why. Exit status 0 if it works, 1 if it fails or does so partly, 2 if that cannot be told',
    )
    .argument('<destination>', '[svc/]NAMESPACE/NAME[:PORT], pod/NAMESPACE/NAME[:PORT], ADDRESS[:PORT], node:NODEPORT')
    .option(
      '--from <source>',
      '"node", an address (of a pod of this node or anybody else), or pod/NAMESPACE/NAME. Default: any pod of this node',
    )
    .addOption(new Option('--proto <protocol>', 'default: that of the port').choices(['tcp', 'udp', 'sctp']))
    .addOption(
      new Option('-o, --output <form>', 'for people or for programs').choices(['text', 'json']).default('text'),
    )
    .option('-v, --verbose', 'with the evidence: what was read, and where')
    .option(
      '--probe',
      'connect to endpoints of other nodes, as the client would: the only thing here that sends packets. Default: they are not told about',
    )
    .option('--agent-lock-dir <path>', 'as given to the agent: its socket is in there', NODE_PATHS.runDir)
    .option('--manifests <directory>', 'without an agent: the objects alone, from files')
    .option('--node <name>', 'with --manifests: the node that is meant. Default: that of the name of this host')
    .action(async (destination: string, flags: Flags, command: Command) => {
      const { from, proto, output, verbose = false, probe = false, agentLockDir, manifests, node } = flags;
      const question = { destination, source: from, protocol: proto };
      if (node !== undefined && manifests === undefined)
        command.error('error: --node is for --manifests alone: of another node, ask there');
      const nodeName = node ?? hostname().toLowerCase();
      if (manifests !== undefined && !readOffline)
        throw new NodeplaneError('ERR_CONFIG', 'This program does not read manifests');
      const { stdout, stderr, exitCode } = await explainHere({
        question,
        json: output === 'json',
        verbose,
        probe,
        unicode: showsUnicode(process.env),
        terminal: process.stdout.columns,
        directory: agentLockDir,
        offline: manifests === undefined ? undefined : () => readOffline!(question, { manifests, nodeName }),
      });
      writeErr(stderr);
      writeOut(stdout);
      process.exitCode = exitCode;
    });
}

/** As the C library decides: LC_ALL, then LC_CTYPE, then LANG. */
function showsUnicode({ LC_ALL, LC_CTYPE, LANG }: NodeJS.ProcessEnv): boolean {
  return /utf-?8/i.test(LC_ALL || LC_CTYPE || LANG || '');
}
