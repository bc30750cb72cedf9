import { errorText, NodeplaneError } from '../core/index.ts';
import { fieldsOfOtherModes } from './check/other-modes.ts';
import { switchedOffWarnings } from './check/switched-off.ts';
import { validate } from './check/validate.ts';
import { complete, isFromFile, isGiven, nodeNameOf } from './complete.ts';
import { type DecodedFile, decodeConfigFile, type GivenFields } from './file/config-file.ts';
import { withNetConf } from './file/flannel-net-conf.ts';
import type { KubeProxyConfig } from './file/kube-proxy-config.ts';
import type { Configuration, FieldPath } from './file/schema.ts';
import { writeConfigYaml } from './file/write-config.ts';
import { FLAG_NAMES, flagNamed } from './flags/flags.ts';
import { type GivenFlags, type ParsedArguments, parseFlags } from './flags/parse-flags.ts';
import { flagLog, flagValues, helpText, usageText } from './flags/usage.ts';
import { effectWarnings } from './no-effect.ts';
import { type ConfigProblem, formatProblem } from './problems.ts';
import { KUBERNETES_VERSION, type Program } from './program.ts';

/** What the command line is read with, so that it is a function of nothing else. */
export interface Surroundings {
  readonly program: Program;
  /** Our own version, shown by --version. */
  readonly version: string;
  /** Throws the system's error if there is no such file. */
  readonly readFile: (path: string) => string;
  /** As the operating system gives it. */
  readonly hostname: string;
  /** The mode in place of the one that flags or file name. @default theirs */
  readonly mode?: string;
}

/** Something to tell the user through the log, which only exists once the configuration is known. */
export interface ConfigMessage {
  readonly level: 'info' | 'warn';
  /** Log it only if the verbosity is at least this. */
  readonly verbosity: number;
  readonly text: string;
}

/** The file that the configuration came from, as it was then. */
export interface LoadedFile {
  readonly path: string;
  readonly text: string;
}

/** What the process has to do. */
export type Outcome = Work | WriteConfig | Ended;

interface Work {
  readonly action: 'run' | 'init-only' | 'cleanup';
  readonly config: KubeProxyConfig;
  readonly configFile: LoadedFile | undefined;
  /** Every flag as it was given or by default, as text: what /flagz shows. */
  readonly flags: Readonly<Record<string, string>>;
  readonly messages: readonly ConfigMessage[];
}

/** Write `text` to `path`, and exit with 0 if that works. */
interface WriteConfig {
  readonly action: 'write-config';
  readonly config: KubeProxyConfig;
  readonly messages: readonly ConfigMessage[];
  readonly path: string;
  readonly text: string;
}

/** Nothing more to do: print and exit. */
interface Ended {
  readonly action: 'help' | 'version' | 'refuse';
  readonly messages: readonly ConfigMessage[];
  readonly output: { readonly stdout: string; readonly stderr: string };
  readonly exitCode: 0 | 1;
}

/**
 * Reads a command line, and the configuration file it names, as kube-proxy does: `--help`, then `--version`, then everything
 * is completed and checked, and only then written, cleaned up or run.
 *
 * @param argv without the program's own name
 * @returns what to do; settings that cannot be used give the action `refuse`. Does not throw, whatever it is given
 */
export function readCommandLine(argv: readonly string[], surroundings: Surroundings): Outcome {
  const { program } = surroundings;
  let parsed: ParsedArguments;
  try {
    parsed = parseFlags(argv, program);
  } catch (error) {
    return refusal(`${usageText(program)}\nError: ${asOurs(error).message}\n`);
  }
  const { flags, positionals } = parsed;
  if (flags.help) return printed('help', helpText(program));
  if (positionals.some((word) => word !== '')) {
    const words = positionals.map((word) => JSON.stringify(word)).join(' ');
    return refusal(`Error: "${program}" does not take any arguments, got [${words}]: flags begin with --\n`);
  }
  const { version } = flags;
  if (version === 'line' || version === 'raw') return printed('version', versionText(version, surroundings));
  const messages: ConfigMessage[] = deprecations(flags);
  try {
    return prepare(flags, surroundings, messages);
  } catch (error) {
    return refusal(failure(program, [asOurs(error).message]), messages);
  }
}

/** @throws ERR_CONFIG when the file cannot be read or decoded */
function prepare(flags: GivenFlags, surroundings: Surroundings, messages: ConfigMessage[]): Outcome {
  const { program, mode } = surroundings;
  const configFile = flags.config ? loadFile(flags.config, surroundings) : undefined;
  const decoded = configFile && decodeFile(configFile, program);
  if (decoded) messages.push(...fileMessages(decoded));
  const { effective, problems: netConfProblems } = withNetConf(completeIn(mode, flags, decoded?.given), {
    isGiven: (path) => isGiven(path, flags, decoded?.given),
    readFile: surroundings.readFile,
  });
  messages.push(
    ...[...effectWarnings(flags, effective), ...switchedOffWarnings(effective)].map(
      (text) => ({ level: 'warn', verbosity: 0, text }) as const,
    ),
    // Whoever is about to change the mode has both sections, so this is no warning.
    ...fieldsOfOtherModes(decoded?.given ?? {}, effective.mode).map(
      (text) => ({ level: 'info', verbosity: 0, text }) as const,
    ),
    ...flagLog(flags, program).map((text) => ({ level: 'info', verbosity: 1, text }) as const),
  );

  const action = actionOf(flags);
  const nodeName = nodeNameOf(effective.hostnameOverride || surroundings.hostname);
  const checked = validate(effective, {
    nodeName,
    master: flags.master ?? '',
    reportedVersion: flags.version?.startsWith('v') ? flags.version : KUBERNETES_VERSION,
  });
  const fileOf = (path: FieldPath) =>
    configFile && isFromFile(path, flags, decoded!.given) ? configFile.path : undefined;
  const needsNode = action === 'run' || action === 'init-only';
  const problems = [
    ...netConfProblems,
    ...('problems' in checked ? checked.problems : []),
    ...emptyFlags(flags, effective),
    ...(needsNode && nodeName === '' && !flags['hostname-override'] ? [NO_NODE_NAME] : []),
  ];
  if ('problems' in checked || problems.length > 0)
    return refusal(
      failure(
        program,
        problems.map((problem) => formatProblem(problem, fileOf(problem.path))),
      ),
      messages,
    );

  const { config } = checked;
  if (action !== 'write-config') return { action, config, configFile, flags: flagValues(flags, program), messages };
  return { action, config, messages, path: flags['write-config-to']!, text: writeConfigYaml(effective, program) };
}

function decodeFile({ path, text }: LoadedFile, program: Program): DecodedFile {
  try {
    return decodeConfigFile(text, program);
  } catch (cause) {
    throw new NodeplaneError('ERR_CONFIG', `Cannot use the configuration file "${path}" (--config)`, { cause });
  }
}

function completeIn(mode: string | undefined, flags: GivenFlags, file: GivenFields | undefined): Configuration {
  if (mode === undefined) return complete(flags, file);
  return file ? complete(flags, { ...file, mode }) : complete({ ...flags, 'proxy-mode': mode }, undefined);
}

function actionOf(flags: GivenFlags): (Work | WriteConfig)['action'] {
  if (flags['write-config-to']) return 'write-config';
  if (flags.cleanup) return 'cleanup';
  return flags['init-only'] ? 'init-only' : 'run';
}

function loadFile(path: string, { readFile }: Surroundings): LoadedFile {
  try {
    return { path, text: readFile(path) };
  } catch (cause) {
    const message = `Cannot read the configuration file "${path}" (--config): name one that is there, or mount it`;
    throw new NodeplaneError('ERR_CONFIG', message, { cause });
  }
}

const NO_NODE_NAME: ConfigProblem = {
  path: 'hostnameOverride',
  message: 'is empty and so is the host name: give the name of the Node object of this machine',
};

/** Flags whose empty value is an error, while the same in the file means "not set". */
function emptyFlags(flags: GivenFlags, effective: Configuration): ConfigProblem[] {
  const problems: ConfigProblem[] = [];
  const override = flags['hostname-override'];
  if (override && nodeNameOf(override) === '')
    problems.push({
      path: 'hostnameOverride',
      message: `"${override}" must not be blank: give the name of this machine’s Node object`,
    });
  if (!flags.config && flags['cluster-cidr'] === '' && effective.detectLocalMode === 'ClusterCIDR') {
    problems.push({ path: 'clusterCIDR', message: '"" is given but empty: name the pod addresses, or leave it out' });
  }
  return problems;
}

function deprecations(flags: GivenFlags): ConfigMessage[] {
  return FLAG_NAMES.flatMap((name) => {
    const { deprecated } = flagNamed(name);
    if (!deprecated || flags[name] === undefined) return [];
    return [{ level: 'warn', verbosity: 0, text: `Flag --${name} has been deprecated, ${deprecated}` } as const];
  });
}

function fileMessages({ strictProblems, furtherDocuments }: DecodedFile): ConfigMessage[] {
  const messages: ConfigMessage[] = [];
  if (strictProblems.length > 0) {
    const text = `Using lenient decoding as strict decoding failed: ${strictProblems.join(', ')}`;
    messages.push({ level: 'warn', verbosity: 0, text });
  }
  if (furtherDocuments > 0) {
    const text = `The configuration file has ${furtherDocuments} more YAML document(s); only the first is read`;
    messages.push({ level: 'warn', verbosity: 0, text });
  }
  return messages;
}

function versionText(request: 'line' | 'raw', { program, version }: Surroundings): string {
  if (program === 'nodeplane agent') return `nodeplane ${version} (as kube-proxy ${KUBERNETES_VERSION})\n`;
  if (request === 'line') return `Kubernetes ${KUBERNETES_VERSION}\n`;
  const [, major, minor] = /^v(\d+)\.(\d+)/.exec(KUBERNETES_VERSION)!;
  return `version.Info{Major:"${major}", Minor:"${minor}", GitVersion:"${KUBERNETES_VERSION}", Compiler:"nodeplane ${version}"}\n`;
}

function failure(program: Program, reasons: readonly string[]): string {
  const list = reasons.length === 1 ? ` ${reasons[0]}` : reasons.map((reason) => `\n  ${reason}`).join('');
  return `${program}: command failed:${list}\n`;
}

function refusal(stderr: string, messages: readonly ConfigMessage[] = []): Ended {
  return { action: 'refuse', messages, output: { stdout: '', stderr }, exitCode: 1 };
}

function printed(action: 'help' | 'version', stdout: string): Ended {
  return { action, messages: [], output: { stdout, stderr: '' }, exitCode: 0 };
}

/** Errors of ours with their causes in the message; anything else is a fault in this program and passes through. */
function asOurs(error: unknown): Error {
  if (error instanceof NodeplaneError) return new Error(errorText(error));
  throw error;
}
