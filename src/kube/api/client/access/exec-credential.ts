import { type Clock, errorText, isMapping, NodeplaneError } from '../../../../core/index.ts';
import type { ApiObserver } from '../observation.ts';

/** Runs a program to its end, however it behaves: within the time, the output and the signal that are given (`sys/exec.ts`). */
export type RunProgram = (
  program: string,
  args: readonly string[],
  options: {
    readonly env: Readonly<Record<string, string>>;
    readonly timeoutMs: number;
    readonly outputLimit: number;
    readonly signal: AbortSignal;
  },
) => Promise<{ readonly status: number; readonly stdout: string; readonly stderr: string }>;

/** `users[].user.exec` of a kubeconfig, its paths complete. */
export interface CredentialPlugin {
  readonly apiVersion: string;
  readonly command: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
}

/** What a plugin gave: a token, or a client certificate with its key in PEM, or both. */
export interface Credential {
  readonly token: string | undefined;
  readonly cert: string | undefined;
  readonly key: string | undefined;
  /** Milliseconds since 1970; undefined: good until the server refuses it. */
  readonly expires: number | undefined;
}

export interface ExecCredentialOptions {
  readonly plugin: CredentialPlugin;
  readonly run: RunProgram;
  readonly clock: Clock;
  readonly observe: ApiObserver;
  /** Kills a plugin that runs. */
  readonly signal: AbortSignal;
}

/** One that asks a cloud's servers answers within seconds; one that waits for a person never does. */
const TIMEOUT_MS = 30_000;
/** When it is told that a plugin is still running. */
const SLOW_MS = 5000;
/** A token or a certificate has a few thousand bytes. */
const OUTPUT_LIMIT = 1024 * 1024;

/**
 * The credential that a plugin gives (client.authentication.k8s.io; KEP-541), kept until it expires. However many ask for it,
 * the plugin runs once, in bounded time.
 */
export class ExecCredential {
  readonly #options: ExecCredentialOptions;
  #credential: Credential | undefined;
  #running: Promise<Credential> | undefined;

  constructor(options: ExecCredentialOptions) {
    this.#options = options;
  }

  /**
   * @param signal ends the waiting of this caller
   * @throws ERR_API naming the plugin, and what it did
   */
  async get(signal: AbortSignal): Promise<Credential> {
    const expires = this.#credential?.expires ?? Number.POSITIVE_INFINITY;
    if (this.#credential && this.#options.clock.wallTime() < expires) return this.#credential;
    this.#running ??= this.#ask().finally(() => {
      this.#running = undefined;
    });
    return await unlessAborted(this.#running, signal);
  }

  async #ask(): Promise<Credential> {
    const { plugin, run, clock, observe, signal } = this.#options;
    const { command, args, env } = plugin;
    const began = performance.now();
    const told = (state: 'running' | 'answered' | 'failed') =>
      observe({ kind: 'credentialPlugin', state, command, seconds: (performance.now() - began) / 1000 });
    const timer = clock.setTimer(() => told('running'), SLOW_MS);
    try {
      const options = { env, timeoutMs: TIMEOUT_MS, outputLimit: OUTPUT_LIMIT, signal };
      const { status, stdout, stderr } = await run(command, args, options);
      if (status !== 0) throw new Error(`it ended with status ${status}: "${stderr.trim().slice(0, 1000)}"`);
      this.#credential = readCredential(stdout, plugin.apiVersion);
      told('answered');
      return this.#credential;
    } catch (cause) {
      told('failed');
      const isMissing = cause instanceof Error && /ENOENT/.test(errorText(cause));
      const remedy = isMissing ? '; install it, or give its whole path as users[].user.exec.command' : '';
      const message = `The credential plugin "${command}" of the kubeconfig gave no credential: ${errorText(cause)}${remedy}`;
      throw new NodeplaneError('ERR_API', message, { facts: { command }, cause });
    } finally {
      timer.cancel();
    }
  }
}

/** `users[].user.exec`. Throws an Error saying what is wrong. */
export function readPlugin(exec: Record<string, unknown>): CredentialPlugin {
  const { apiVersion, command, args, env, interactiveMode } = exec;
  if (typeof command !== 'string' || command === '')
    throw new Error('users[].user.exec.command is missing; name the program that gives the credential');
  if (typeof apiVersion !== 'string')
    throw new Error('users[].user.exec.apiVersion is missing; write "client.authentication.k8s.io/v1"');
  if (interactiveMode === 'Always')
    throw new Error('users[].user.exec wants to ask a person (interactiveMode: Always)');
  const variables = (Array.isArray(env) ? env : []).filter(isMapping);
  return {
    apiVersion,
    command,
    args: Array.isArray(args) ? args.map(String) : [],
    env: Object.fromEntries(variables.map(({ name, value }) => [String(name), String(value)])),
  };
}

/** An ExecCredential as a plugin prints it. Throws an Error saying what is wrong; never with a part of it, which is secret. */
function readCredential(printed: string, apiVersion: string): Credential {
  let content: unknown;
  try {
    content = JSON.parse(printed);
  } catch {
    throw new Error(`what it printed, ${printed.length} characters, is no JSON`);
  }
  if (!isMapping(content) || !isMapping(content.status))
    throw new Error('what it printed is no ExecCredential with a status');
  if (content.apiVersion !== undefined && content.apiVersion !== apiVersion) {
    throw new Error(`it answered in ${String(content.apiVersion)}, the kubeconfig wants ${apiVersion}`);
  }
  const text = (name: string): string | undefined => {
    const value = (content.status as Record<string, unknown>)[name];
    return typeof value === 'string' && value !== '' ? value : undefined;
  };
  const [token, cert, key] = [text('token'), text('clientCertificateData'), text('clientKeyData')];
  if (!token && !cert) throw new Error('its answer has neither token nor clientCertificateData');
  if ((cert === undefined) !== (key === undefined)) {
    throw new Error('its answer has only one of clientCertificateData and clientKeyData');
  }
  const expiration = text('expirationTimestamp');
  const expires = expiration === undefined ? undefined : Date.parse(expiration);
  if (Number.isNaN(expires)) throw new Error(`its expirationTimestamp "${expiration}" is no time`);
  return { token, cert, key, expires };
}

/** Rejects when `signal` aborts first. What `promise` comes to then is nobody's concern. */
function unlessAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const onAbort = () => reject(new Error('stopped'));
    if (signal.aborted) onAbort();
    signal.addEventListener('abort', onAbort);
    promise.then(resolve, reject).finally(() => signal.removeEventListener('abort', onAbort));
  });
}
