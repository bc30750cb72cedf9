import type { IncomingMessage } from 'node:http';
import type { RequestOptions } from 'node:https';
import { type Clock, errorText, NodeplaneError, systemClock } from '../../../core/index.ts';
import { isProtobuf, PROTOBUF } from '../../objects/protobuf/envelope.ts';
import { ExecCredential, type RunProgram } from './access/exec-credential.ts';
import { remedyOfContent, remedyOfFailure, remedyOfStatus } from './access/failure-remedy.ts';
import { type ApiServerLocation, loadServerAccess, type ServerAccess } from './access/kube-config.ts';
import { AgentPool } from './agent-pool.ts';
import { type ApiClient, type ApiRequest, type ApiResponse, ApiStatusError } from './api-client.ts';
import { exchange } from './exchange.ts';
import type { ApiObserver } from './observation.ts';
import { QuietGuard } from './quiet-guard.ts';
import { RateLimit } from './rate-limit.ts';
import { readStatusError } from './status-error.ts';

export interface ApiClientOptions extends ApiServerLocation {
  /** The User-Agent header, `kube-proxy/v1.2.3` say. */
  readonly userAgent: string;
  /** @default the system's clock */
  readonly clock?: Clock;
  /** Told about every request. @default nobody */
  readonly observe?: ApiObserver;
  /** How often the server may be asked. @default as often as one likes */
  readonly rate?: { readonly qps: number; readonly burst: number };
  /** Told which server is talked to, at the start and when another kubeconfig is used. @default nobody */
  readonly chosen?: (access: Pick<ServerAccess, 'server' | 'source' | 'proxy'>) => void;
  /** Whether protobuf is asked for where it can be read. @default true */
  readonly protobuf?: boolean;
  /** Runs the credential plugin of a kubeconfig. @default a kubeconfig with one is refused */
  readonly runProgram?: RunProgram;
}

/** An answer, or the next piece of it, comes within this time. */
const QUIET_MS = 60_000;
/** An answer is there as a whole within this time: of what comes byte by byte there would be no end. */
const LIMIT_MS = 300_000;
/** Requests that the rate holds back for longer are told of, as client-go does. */
const LONG_WAIT_MS = 1000;

/**
 * Makes a client from kubeconfig, master URL or service account. Rejects with ERR_CONFIG if these cannot be read; the
 * server itself is not contacted.
 */
export async function createApiClient(options: ApiClientOptions): Promise<ApiClient> {
  const closing = new AbortController();
  const { runProgram: run, clock = systemClock, observe = () => {} } = options;
  const load = () =>
    loadServerAccess(options, (plugin) => {
      if (run) return new ExecCredential({ plugin, run, clock, observe, signal: closing.signal });
      throw new NodeplaneError(
        'ERR_CONFIG',
        `Cannot run the credential plugin "${plugin.command}" of the kubeconfig here`,
      );
    });
  const access = load();
  options.chosen?.(access);
  return new HttpApiClient(access, load, closing, options);
}

class HttpApiClient implements ApiClient {
  #access: ServerAccess;
  readonly #reload: () => ServerAccess;
  readonly #userAgent: string;
  readonly #clock: Clock;
  readonly #observe: ApiObserver;
  readonly #limit: RateLimit;
  readonly #protobuf: boolean;
  readonly #agents = new AgentPool();
  readonly #closing: AbortController;
  readonly #chosen: NonNullable<ApiClientOptions['chosen']>;

  constructor(access: ServerAccess, reload: () => ServerAccess, closing: AbortController, options: ApiClientOptions) {
    this.#closing = closing;
    this.#access = access;
    this.#reload = reload;
    this.#chosen = options.chosen ?? (() => {});
    this.#userAgent = options.userAgent;
    this.#protobuf = options.protobuf ?? true;
    this.#clock = options.clock ?? systemClock;
    this.#observe = options.observe ?? (() => {});
    this.#limit = new RateLimit({ clock: this.#clock, ...(options.rate ?? { qps: 0, burst: 0 }) });
  }

  get server(): URL {
    return this.#access.server;
  }

  async send(request: ApiRequest): Promise<ApiResponse> {
    try {
      return await this.#attempt(request);
    } catch (error) {
      // It is not reached, is not the one that is trusted, or the credentials are not there: perhaps the kubeconfig was put right.
      if (!(error instanceof ApiStatusError)) this.#renewAccess({ ifChanged: true });
      if (!(error instanceof ApiStatusError) || error.status !== 401) throw error;
      // The token expired earlier than it said, or was revoked: whatever was remembered of it is forgotten.
      this.#renewAccess({ ifChanged: false });
      return await this.#attempt(request);
    }
  }

  close(): void {
    this.#closing.abort();
    this.#agents.close();
  }

  async #holdBack({ method, path, query, signal }: ApiRequest): Promise<void> {
    // The pages of a list come one after the other, and count as the one request that client-go makes of them.
    if (query?.continue !== undefined) return;
    const asked = this.#clock.now();
    await this.#limit.wait(signal);
    const waitedMs = this.#clock.now() - asked;
    if (waitedMs >= LONG_WAIT_MS) this.#observe({ kind: 'heldBack', method, path, seconds: waitedMs / 1000 });
  }

  /** A file that cannot be read at this moment, because it is being replaced, leaves the old access in place. */
  #renewAccess({ ifChanged }: { readonly ifChanged: boolean }): void {
    try {
      const access = this.#reload();
      const isChanged = access.text !== this.#access.text;
      if (isChanged) this.#chosen(access);
      if (isChanged || !ifChanged) this.#access = access;
    } catch (error) {
      if (!(error instanceof NodeplaneError)) throw error;
    }
  }

  async #attempt(request: ApiRequest): Promise<ApiResponse> {
    await this.#holdBack(request);
    const { method, path } = request;
    const { server, misspelt } = this.#access;
    const attempt = `${method} ${server.origin}${path}`;
    const options = await this.#optionsFor(request, attempt);
    const asked = { source: this.#access.source, server, options, now: this.#clock.wallTime() };
    const started = this.#clock.now();
    const requestEnded = (code: number | '<error>') => {
      const seconds = (this.#clock.now() - started) / 1000;
      const watch = request.query?.watch === 'true';
      this.#observe({ kind: 'request', method, host: server.host, code, seconds, watch });
    };

    // What is to be destroyed when it takes too long: first the request, then the response.
    let cut: (error: Error) => void = () => {};
    const guard = new QuietGuard(this.#clock, QUIET_MS, (limitMs) => cut(new Error(`no byte for ${limitMs / 1000} s`)));
    const { limitMs = LIMIT_MS } = request;
    const limit = this.#clock.setTimer(() => cut(new Error(`not done within ${limitMs / 1000} s`)), limitMs);
    const onAbort = () => cut(new Error('stopped'));
    request.signal.addEventListener('abort', onAbort);
    const finish = () => {
      guard.stop();
      limit.cancel();
      request.signal.removeEventListener('abort', onAbort);
    };

    try {
      const { answer, destroy } = exchange(server, options, request.body, request.bodyType);
      cut = destroy;
      if (request.signal.aborted) onAbort();
      const response = await answer;
      cut = (error) => response.destroy(error);
      guard.heard();
      const status = response.statusCode ?? 0;
      requestEnded(status);
      const body = readBody(response, attempt, guard, finish);
      const { date, 'content-type': contentType } = response.headers;
      if (!isApiAnswer(status, contentType)) {
        response.destroy();
        const found = `the answer ${status} is ${contentType}`;
        throw new NodeplaneError('ERR_API', `${attempt}: ${found}${remedyOfContent(asked)}`);
      }
      if (status < 200 || status > 299) {
        throw await readStatusError(attempt, status, response.headers, body, remedyOfStatus(status, asked) + misspelt);
      }
      return { status, date, contentType, body, setQuietLimit: (ms) => guard.setLimit(ms) };
    } catch (error) {
      finish();
      if (error instanceof NodeplaneError) throw error;
      requestEnded('<error>');
      throw failure(attempt, error, remedyOfFailure(error, asked) + misspelt);
    }
  }

  async #optionsFor(request: ApiRequest, attempt: string): Promise<RequestOptions> {
    const { server } = this.#access;
    let credentials: RequestOptions;
    try {
      credentials = await this.#access.requestOptions(request.signal);
    } catch (error) {
      throw failure(`${attempt}: reading the credentials`, error);
    }
    const query = new URLSearchParams(request.query).toString();
    const prefersProtobuf = this.#protobuf && request.readsProtobuf === true;
    // A server behind a gateway may have a path of its own.
    const root = server.pathname.replace(/\/$/, '');
    return {
      ...credentials,
      agent: credentials.agent ?? this.#agents.agentFor(server, credentials),
      method: request.method,
      path: `${root}${request.path}${query === '' ? '' : `?${query}`}`,
      headers: {
        ...credentials.headers,
        'User-Agent': this.#userAgent,
        Accept: prefersProtobuf ? `${PROTOBUF}, application/json` : 'application/json',
      },
    };
  }
}

/**
 * Whether an API server answers so. Some in between answer in its place with a page for people: 200 for a login, 404 for a path they do
 * not know, which is not to say that the server has no such resource. Of other refusals nobody concludes so much.
 */
function isApiAnswer(status: number, contentType: string | undefined): boolean {
  if (status === 404) return !/^text\/html\b/i.test(contentType ?? '');
  if (status < 200 || status > 299 || contentType === undefined) return true;
  return isProtobuf(contentType) || /^application\/json\b/i.test(contentType);
}

async function* readBody(
  response: IncomingMessage,
  attempt: string,
  guard: QuietGuard,
  finish: () => void,
): AsyncGenerator<Uint8Array> {
  try {
    for await (const chunk of response) {
      guard.heard();
      yield chunk as Uint8Array;
    }
  } catch (error) {
    throw failure(`${attempt}: reading the answer`, error);
  } finally {
    finish();
  }
}

function failure(attempt: string, error: unknown, remedy = ''): NodeplaneError {
  return new NodeplaneError('ERR_API', `${attempt} failed: ${errorText(error)}${remedy}`, { cause: error });
}
