import { errorText } from '../core/index.ts';
import { COMMANDS } from './commands.ts';
import { parseHeader } from './config.ts';
import { type Environment, requireVariables } from './environment.ts';
import { CNI_ERROR, CniError, errorJson, toCniError } from './errors.ts';
import { atLeast, SUPPORTED_VERSIONS } from './versions.ts';

/** Everything the plugin sees of the world besides the kernel. */
export interface PluginProcess {
  readonly env: Environment;
  /** Arguments after the program's name. */
  readonly argv: readonly string[];
  /** Reads all of standard input; called at most once, and not at all by VERSION. */
  stdin(): string;
  stdout(text: string): void;
  stderr(text: string): void;
  /** The program's own version. */
  readonly version: string;
}

const NEWEST = SUPPORTED_VERSIONS[SUPPORTED_VERSIONS.length - 1]!;

/**
 * The CNI plugin: serves the command named by CNI_COMMAND. Results and error objects go to stdout and nothing else does.
 *
 * @returns the exit status: 0, or 1 after an error object was printed
 */
export function main(plugin: PluginProcess): number {
  const { env, stdout } = plugin;
  const command = env.CNI_COMMAND;
  if (!command || plugin.argv.includes('--version') || plugin.argv.includes('--help')) {
    plugin.stderr(aboutText(plugin.version));
    return 0;
  }
  if (command === 'VERSION') {
    stdout(toJson({ cniVersion: NEWEST, supportedVersions: SUPPORTED_VERSIONS }));
    return 0;
  }
  // Errors found before the configuration is understood are reported in the newest version's form; all forms are alike.
  let cniVersion: string = NEWEST;
  try {
    const { required, since, run } = commandNamed(command);
    requireVariables(env, required);
    const header = parseHeader(readInput(plugin));
    ({ cniVersion } = header);
    if (!atLeast(header.cniVersion, since)) {
      throw new CniError(CNI_ERROR.INCOMPATIBLE_VERSION, `Version ${cniVersion} of CNI has no command ${command}`, {
        details: `${command} exists since ${since}`,
      });
    }
    if (!run) throw unsupportedCommand(command);
    const result = run({ env, header, report: (message) => plugin.stderr(`nodeplane-cni: ${message}\n`) });
    if (result) stdout(toJson(result));
    return 0;
  } catch (error) {
    stdout(errorJson(toCniError(error), cniVersion));
    return 1;
  }
}

function commandNamed(name: string): (typeof COMMANDS)[string] {
  const command = Object.hasOwn(COMMANDS, name) ? COMMANDS[name] : undefined;
  if (!command) throw unsupportedCommand(name);
  return command;
}

function unsupportedCommand(name: string): CniError {
  const served = Object.entries(COMMANDS).flatMap(([verb, { run }]) => (run ? [verb] : []));
  return new CniError(
    CNI_ERROR.INVALID_ENVIRONMENT,
    `CNI_COMMAND "${name}" is not served by this plugin, only ${served.join(', ')} and VERSION are`,
  );
}

function readInput(plugin: PluginProcess): string {
  try {
    return plugin.stdin();
  } catch (cause) {
    throw new CniError(CNI_ERROR.IO_FAILURE, 'Cannot read the network configuration from standard input', {
      details: errorText(cause),
      cause,
    });
  }
}

function aboutText(version: string): string {
  return [
    `nodeplane-cni ${version}: attaches pods to a bridge on this node`,
    `CNI protocol versions supported: ${SUPPORTED_VERSIONS.join(', ')}`,
    'It is run by a container runtime; by hand, set CNI_COMMAND and the other CNI_ variables and give a configuration on standard input',
    '',
  ].join('\n');
}

function toJson(value: object): string {
  return `${JSON.stringify(value, undefined, 2)}\n`;
}
