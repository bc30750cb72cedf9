import { type Command, Option } from 'commander';
import { AGENT_ADDRESS, showTrace } from '../../agent/index.ts';
import { NodeplaneError } from '../../core/index.ts';
import { reportFailure } from '../report-failure.ts';
import { writeOut } from '../standard-output.ts';
import { readAgentAddress } from './agent-address.ts';
import { EX_SOFTWARE, EX_UNAVAILABLE, EX_USAGE } from './exit-status.ts';

interface Flags {
  readonly live: string;
  readonly proto: string;
  readonly probe?: boolean;
  readonly payload?: string;
  readonly output: 'text' | 'json';
  readonly address: string;
}

/** `nodeplane trace`: what becomes of packets, as it happens. */
export function addTraceCommand(program: Command): void {
  program
    .command('trace')
    .description(
      'watch what becomes of packets from a source to a destination on this node, rule by rule; nothing stays behind. Exit status 0: answered, 1: seen and failing, 2: nothing seen, or not enough; 64: wrong question',
    )
    .argument('<source>', 'an address, or any')
    .argument('<destination>', 'ADDRESS:PORT, or NAMESPACE/NAME[:PORT] of a Service')
    .option('--live <time>', 'how long to watch at most; it ends with the first flow that is complete', '10s')
    .addOption(new Option('--proto <protocol>', 'protocol').choices(['tcp', 'udp', 'sctp']).default('tcp'))
    .option('--probe', 'connect from the pod that has the source address (tcp: closed at once; udp: with --payload)')
    .option('--payload <text>', 'what --probe sends by udp')
    .addOption(
      new Option('-o, --output <form>', 'for people or for programs').choices(['text', 'json']).default('text'),
    )
    .option(
      '--address <address:port>',
      "the agent's metrics port, asked for Services by name",
      readAgentAddress,
      AGENT_ADDRESS,
    )
    .action(runTraceCommand);
}

async function runTraceCommand(source: string, destination: string, flags: Flags): Promise<void> {
  const { live, proto: protocol, probe = false, payload, output, address } = flags;
  const interrupted = new AbortController();
  // However it is ended it switches off what it has switched on, also where that is asked for twice.
  for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(name, () => interrupted.abort());
  const { signal } = interrupted;
  try {
    const json = output === 'json';
    const shown = await showTrace({ source, destination, protocol, live, probe, payload, json, address, signal });
    writeOut(shown.stdout);
    process.exitCode = shown.exitCode;
  } catch (error) {
    reportFailure('nodeplane trace', error);
    const { code, facts } = error instanceof NodeplaneError ? error : { code: '', facts: {} };
    const isQuestion = code === 'ERR_CONFIG' && !('capability' in facts);
    process.exitCode =
      isQuestion || code === 'ERR_NETNS' ? EX_USAGE : code === 'ERR_STATUS_AGENT' ? EX_UNAVAILABLE : EX_SOFTWARE;
  }
}
