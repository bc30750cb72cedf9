import { existsSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { attempt, isMapping, parseJson } from '../../core/index.ts';
import { exec } from '../../sys/index.ts';
import type { Environment } from '../protocol/environment.ts';
import { CNI_ERROR, CniError } from '../protocol/errors.ts';
import type { NetworkHeader } from '../protocol/header.ts';
import { parseResult } from '../protocol/parse-result.ts';
import type { CniResult } from '../protocol/result.ts';

/** A program that is being replaced cannot be run (ETXTBSY); the reference library tries as often. */
const TRIES = 6;
const BETWEEN_TRIES_MS = 1000;
const LONGEST_RUN_MS = 60_000;

/** ADD by an IPAM plugin. Throws CniError with the plugin's own code and words. */
export async function addByDelegate(type: string, header: NetworkHeader, env: Environment): Promise<CniResult> {
  const printed = await runDelegate('ADD', type, header, env);
  return parseResult(printed, header.cniVersion, `result of ${type}`);
}

/** DEL by an IPAM plugin, which has to cope with there being nothing to delete. */
export async function deleteByDelegate(type: string, header: NetworkHeader, env: Environment): Promise<void> {
  await runDelegate('DEL', type, header, env);
}

/** CHECK or STATUS by an IPAM plugin. */
export async function askDelegate(
  command: 'CHECK' | 'STATUS',
  type: string,
  header: NetworkHeader,
  env: Environment,
): Promise<void> {
  await runDelegate(command, type, header, env);
}

/** GC by an IPAM plugin. One older than GC does not know the verb or the version, and has nothing to say. */
export async function collectByDelegate(
  type: string,
  header: NetworkHeader,
  env: Environment,
  warn: (message: string) => void,
): Promise<void> {
  try {
    await runDelegate('GC', type, header, env);
  } catch (error) {
    if (!isTooOld(error)) throw error;
    warn(`IPAM plugin "${type}" collects no garbage: ${error.message}`);
  }
}

/** Whether a plugin answered that it does not know a verb, or the version of the specification that has it. */
export function isTooOld(error: unknown): error is CniError {
  if (!(error instanceof CniError)) return false;
  return error.cniCode === CNI_ERROR.INVALID_ENVIRONMENT || error.cniCode === CNI_ERROR.INCOMPATIBLE_VERSION;
}

/** Runs the plugin with the request's own environment and configuration. Returns what it printed as JSON, if anything. */
async function runDelegate(command: string, type: string, header: NetworkHeader, env: Environment): Promise<unknown> {
  const program = findPlugin(type, env);
  const variables = Object.fromEntries(
    Object.entries(env).filter((entry): entry is [string, string] => entry[1] !== undefined),
  );
  const options = {
    input: JSON.stringify(header.raw),
    env: { ...variables, CNI_COMMAND: command },
    timeoutMs: LONGEST_RUN_MS,
  };
  for (let tried = 1; ; tried++) {
    try {
      const { status, stdout, stderr } = await exec(program, [], options);
      const printed = attempt(() => parseJson(stdout));
      if (status !== 0) throw failure(command, type, printed, stderr.trim() || stdout.trim());
      return printed;
    } catch (error) {
      const { cause } = error as { cause?: NodeJS.ErrnoException };
      if (cause?.code !== 'ETXTBSY' || tried >= TRIES) throw error;
      await new Promise((resolve) => setTimeout(resolve, BETWEEN_TRIES_MS));
    }
  }
}

/** The path of a plugin's program. Throws CniError 7 when CNI_PATH has none. */
export function findPlugin(type: string, { CNI_PATH: path = '' }: Environment): string {
  for (const folder of path.split(':').filter(Boolean)) {
    const program = join(folder, type);
    if (existsSync(program) && statSync(program).isFile()) return program;
  }
  throw new CniError(CNI_ERROR.INVALID_NETWORK_CONFIG, `Cannot find the IPAM plugin "${type}" in CNI_PATH "${path}"`);
}

function failure(command: string, type: string, printed: unknown, text: string): CniError {
  const { code, msg, details } = isMapping(printed) ? printed : {};
  const cniCode = typeof code === 'number' && Number.isInteger(code) ? code : CNI_ERROR.DELEGATE_FAILED;
  const said = typeof msg === 'string' && msg !== '' ? msg : text;
  return new CniError(cniCode, `IPAM plugin "${type}" failed (${command}): ${said}`, {
    ...(typeof details === 'string' && { details }),
  });
}
