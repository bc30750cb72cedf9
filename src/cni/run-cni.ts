import { errorText, jsonText } from '../core/index.ts';
import { type Environment, requireVariables } from './protocol/environment.ts';
import { CNI_ERROR, CniError, errorJson, toCniError } from './protocol/errors.ts';
import { parseHeader } from './protocol/header.ts';
import { resultObject } from './protocol/result.ts';
import { atLeast, NEWEST_VERSION, SUPPORTED_VERSIONS } from './protocol/versions.ts';
import { COMMANDS } from './verbs/commands.ts';

/** One request of the CNI protocol, wherever it comes from. */
export interface CniRequest {
  /** The variables of the protocol; CNI_COMMAND must be among them. */
  readonly environment: Environment;
  /** The network configuration, or how to read it: called at most once, and not at all by VERSION. */
  readonly stdin: string | (() => string);
  /**
   * An open descriptor of the pod's namespace, used instead of opening CNI_NETNS; it stays the caller's. CNI_NETNS is what
   * results name.
   */
  readonly netns?: number | undefined;
  /** Serve the pod's loopback whatever type the configuration names. @default false */
  readonly asLoopback?: boolean | undefined;
}

/** The answer. */
export interface CniReply {
  /** 0, or 1 with an error object on stdout. */
  readonly exitCode: 0 | 1;
  /** The result or error object, or nothing. */
  readonly stdout: string;
  /** Lines for people. */
  readonly stderr: string;
}

/**
 * Serves one request of the protocol in this process, in the network namespace of the calling thread. Never throws: what
 * goes wrong is an error object of the specification.
 */
export async function runCni({ environment, stdin, netns, asLoopback }: CniRequest): Promise<CniReply> {
  const command = environment.CNI_COMMAND ?? '';
  if (command === 'VERSION') {
    const versions = { cniVersion: NEWEST_VERSION, supportedVersions: SUPPORTED_VERSIONS };
    return { exitCode: 0, stdout: jsonText(versions), stderr: '' };
  }
  let stderr = '';
  const warn = (message: string) => {
    stderr += `nodeplane-cni: ${message}\n`;
  };
  // Errors found before the configuration is understood are reported in the newest version's form; all forms are alike.
  let cniVersion: string = NEWEST_VERSION;
  try {
    const { required, since, run, runLoopback } = commandNamed(command);
    requireVariables(environment, required);
    const header = parseHeader(readInput(stdin));
    ({ cniVersion } = header);
    if (!atLeast(header.cniVersion, since)) {
      throw new CniError(CNI_ERROR.INCOMPATIBLE_VERSION, `Version ${cniVersion} of CNI has no command ${command}`, {
        details: `${command} exists since ${since}`,
      });
    }
    const serve = asLoopback || header.type === 'loopback' ? runLoopback : run;
    const result = await serve({ env: environment, netns, header, warn });
    return { exitCode: 0, stdout: result ? jsonText(resultObject(result, header.cniVersion)) : '', stderr };
  } catch (error) {
    return { exitCode: 1, stdout: errorJson(toCniError(error), cniVersion), stderr };
  }
}

function commandNamed(name: string): (typeof COMMANDS)[string] {
  const command = Object.hasOwn(COMMANDS, name) ? COMMANDS[name] : undefined;
  if (command) return command;
  const served = Object.keys(COMMANDS).join(', ');
  throw new CniError(
    CNI_ERROR.INVALID_ENVIRONMENT,
    `CNI_COMMAND "${name}" is not served by this plugin, only ${served} and VERSION are`,
  );
}

function readInput(stdin: CniRequest['stdin']): string {
  if (typeof stdin === 'string') return stdin;
  try {
    return stdin();
  } catch (cause) {
    throw new CniError(CNI_ERROR.IO_FAILURE, 'Cannot read the network configuration from standard input', {
      details: errorText(cause),
      cause,
    });
  }
}
