import type { Environment } from './protocol/environment.ts';
import { SUPPORTED_VERSIONS } from './protocol/versions.ts';
import { runCni } from './run-cni.ts';

/** Everything the stand-alone plugin sees of the world besides the kernel. */
export interface PluginProcess {
  readonly env: Environment;
  /** Arguments after the program's name. */
  readonly argv: readonly string[];
  /** The path the program was started by. Under the name `loopback` it serves the pod's loopback. */
  readonly program: string;
  /** Reads all of standard input; called at most once, and not at all by VERSION. */
  stdin(): string;
  /** Throws when nobody reads. */
  stdout(text: string): void;
  stderr(text: string): void;
  /** The program's own version. */
  readonly version: string;
}

/**
 * The CNI plugin as a program: serves the command named by CNI_COMMAND. Results and error objects go to stdout and nothing
 * else does.
 *
 * @returns the exit status: 0, or 1 after an error object was printed
 */
export async function main(plugin: PluginProcess): Promise<number> {
  if (!plugin.env.CNI_COMMAND || plugin.argv.includes('--version') || plugin.argv.includes('--help')) {
    plugin.stderr(aboutText(plugin.version));
    return 0;
  }
  const asLoopback = /(^|\/)loopback$/.test(plugin.program);
  let config = '';
  const stdin = () => {
    config = plugin.stdin();
    return config;
  };
  const { exitCode, stdout, stderr } = await runCni({ environment: plugin.env, stdin, asLoopback });
  try {
    if (stdout) plugin.stdout(stdout);
  } catch {
    // Nobody reads: the runtime was killed. It takes an ADD for failed, and may never ask for a DEL.
    const environment = { ...plugin.env, CNI_COMMAND: 'DEL' };
    if (plugin.env.CNI_COMMAND === 'ADD' && exitCode === 0) await runCni({ environment, stdin: config, asLoopback });
    return 1;
  }
  if (stderr) plugin.stderr(stderr);
  return exitCode;
}

function aboutText(version: string): string {
  return [
    `nodeplane-cni ${version}: attaches pods to the network of this node`,
    `CNI protocol versions supported: ${SUPPORTED_VERSIONS.join(', ')}`,
    'It is run by a container runtime; by hand, set CNI_COMMAND and the other CNI_ variables and give a configuration on standard input',
    '',
  ].join('\n');
}
