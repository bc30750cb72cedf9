import { NODE_PATHS, shellWord } from '../../core/index.ts';

/** Where the commands that ask look for the agent's metrics port: --metrics-bind-address by default. */
export const AGENT_ADDRESS = '127.0.0.1:10249';

/** How an agent is reached, and was started. */
export interface AgentWays {
  /** Its metrics port, as `address:port` from this machine. */
  readonly metrics: string;
  /** Its --agent-lock-dir; empty: it has no socket. */
  readonly lockDir: string;
  /** Its command line, without the program and `agent`. */
  readonly argv: readonly string[];
}

/** nodeplane's commands that are told as remedies. */
export interface OwnCommands {
  readonly status: string;
  readonly routes: string;
  readonly diff: string;
  /** Without a question. */
  readonly explain: string;
  readonly ipam: string;
  readonly ipamCheck: string;
  readonly preflight: string;
  /** @param name of a Service; all without one */
  services(name?: string): string;
}

/** The commands as they ask this very agent, to be pasted into a shell: flags are there where it is not where they look for it. */
export function ownCommands({ metrics, lockDir, argv }: AgentWays): OwnCommands {
  return {
    status: `nodeplane status${askedAt(metrics)}`,
    routes: `nodeplane routes${askedAt(metrics)}`,
    diff: `nodeplane diff${inLockDir(lockDir)}`,
    explain: `nodeplane explain${inLockDir(lockDir)}`,
    ipam: withFlags('ipam', argv),
    ipamCheck: withFlags('ipam check', argv),
    preflight: withFlags('preflight', argv),
    services: (name) => servicesCommand(metrics, name),
  };
}

/** Of commands that read the agent's flags. */
function withFlags(command: string, argv: readonly string[]): string {
  return [`nodeplane ${command}`, ...argv.map(flagWord)].join(' ');
}

/**
 * `nodeplane services`, asking an agent at `metrics`.
 *
 * @param name of a Service; all without one
 */
export function servicesCommand(metrics: string, name?: string): string {
  return `nodeplane services${name === undefined ? '' : ` ${shellWord(name)}`}${askedAt(metrics)}`;
}

function inLockDir(lockDir: string): string {
  return lockDir === NODE_PATHS.runDir ? '' : ` --agent-lock-dir ${shellWord(lockDir)}`;
}

function askedAt(metrics: string): string {
  return metrics === AGENT_ADDRESS ? '' : ` --address ${shellWord(metrics)}`;
}

/** `--cni` as it is; shellWord quotes what begins like a flag, as it is for names. */
function flagWord(word: string): string {
  const name = word.replace(/^-+/, '');
  return name !== '' && shellWord(name) === name ? word : shellWord(word);
}
