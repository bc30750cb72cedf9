import { writeFileSync } from 'node:fs';
import type { IncomingMessage, ServerResponse } from 'node:http';
import https from 'node:https';
import type { AddressInfo, Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { withPort } from '../../../src/core/index.ts';
import { type ApiObject, apiVersionOf, keyOf, RESOURCES, resourceOfKind } from './api-object.ts';
import { type Certificate, makeCertificate } from './certificate.ts';
import { discoveryAt } from './discovery.ts';
import { behaveWell, type Misbehaviour } from './misbehaviour.ts';
import { ObjectHistory } from './object-history.ts';
import { type Content, ObjectRequests, type Outcome } from './object-requests.ts';
import { encodeObject, hasMessages } from './protobuf/index.ts';
import { type ApiCall, isAllowed, parseCall, permissionOf, type RequestRecord } from './request.ts';
import { fieldSelector, labelSelector, type Selector } from './selector.ts';
import { Refusal, statusObject } from './status.ts';
import { Watch } from './watch.ts';
import { chooseFormat, JSON_FORMAT, type Speaks, type WireFormat } from './wire-format.ts';

export interface FakeApiServerOptions {
  /** @default 127.0.0.1 */
  readonly address?: string;
  /** @default any free one; the same again after a stop */
  readonly port?: number;
  /** Which formats it has; may be changed later. @default both, as a real server */
  readonly speaks?: Speaks;
}

/**
 * A small Kubernetes API server: real requests over TLS to list, watch, read and write, objects in memory (`ObjectRequests`
 * says what it leaves out of writing). Tests change its objects, have it misbehave, and see what was asked of it.
 */
export class FakeApiServer {
  readonly history = new ObjectHistory();
  readonly #objectRequests = new ObjectRequests(this.history);
  readonly misbehave: Misbehaviour = behaveWell();
  /** What /version says; undefined: it does not say. */
  gitVersion: string | undefined = 'v1.36.2';
  speaks: Speaks;
  /** Every request answered so far, oldest first. */
  readonly requests: RequestRecord[] = [];
  /** How many connections were made to it. */
  connections = 0;
  /** How many requests it has left without an answer. */
  stalled = 0;
  readonly #address: string;
  #port: number;
  #certificate: Certificate | undefined;
  #server: https.Server | undefined;
  readonly #watches = new Set<Watch>();
  readonly #sockets = new Set<Socket>();
  readonly #snapshots = new Map<string, { readonly items: readonly ApiObject[]; readonly version: number }>();

  constructor({ address = '127.0.0.1', port = 0, speaks = 'both' }: FakeApiServerOptions = {}) {
    this.speaks = speaks;
    this.#address = address;
    this.#port = port;
  }

  get url(): string {
    return `https://${withPort(this.#address, this.#port)}`;
  }

  /** The authority to trust. */
  get ca(): string {
    this.#certificate ??= makeCertificate([this.#address]);
    return this.#certificate.cert;
  }

  async start(): Promise<void> {
    const { ca: cert } = this;
    const server = https.createServer({ cert, key: this.#certificate?.key }, (request, response) => {
      this.#answer(request, response).catch((error) => breakDown(response, error));
    });
    server.on('secureConnection', () => this.connections++);
    server.on('connection', (socket: Socket) => {
      this.#sockets.add(socket);
      socket.on('close', () => this.#sockets.delete(socket));
    });
    server.keepAliveTimeout = 60_000;
    await new Promise<void>((resolve, reject) => {
      server.on('error', reject);
      server.listen(this.#port, this.#address, resolve);
    });
    this.#port = (server.address() as AddressInfo).port;
    this.#server = server;
  }

  /** Ends at once, as a killed server does: all connections break. Objects stay, and `start` may follow. */
  async stop(): Promise<void> {
    const server = this.#server;
    this.#server = undefined;
    if (!server) return;
    const closed = new Promise((resolve) => server.close(resolve));
    // Those in the middle of a TLS handshake too, which the HTTP server does not know yet and would serve to their end.
    for (const socket of this.#sockets) socket.destroy();
    await closed;
  }

  /** Creates or replaces objects. */
  apply(...objects: readonly ApiObject[]): void {
    for (const object of objects) this.history.put(object);
  }

  /** Deletes an object, named by kind and `namespace/name`. */
  delete(kind: string, key: string): boolean {
    return this.history.delete(resourceOfKind(kind), key);
  }

  /** All objects of a kind, or those a client has created. */
  objects(kind: string): readonly ApiObject[] {
    return this.history.objects(resourceOfKind(kind));
  }

  /** Old versions are no longer available: watches cannot be taken up again, and lists not continued. */
  compact(): void {
    this.history.compact();
    this.#snapshots.clear();
  }

  /** Encodes what there is ahead of the requests: who measures a client does not want to measure this. */
  encodeAhead(): void {
    for (const resource of RESOURCES) {
      if (!hasMessages(apiVersionOf(resource))) continue;
      for (const object of this.history.objects(resource)) encodeObject(object);
    }
  }

  /** The open watches, of one resource or all. */
  watches(resource?: string): readonly Watch[] {
    return [...this.#watches].filter((watch) => resource === undefined || watch.resource.name === resource);
  }

  /** How many requests of this kind were made. */
  count(verb: ApiCall['verb'], resource: string): number {
    return this.requests.filter((request) => request.verb === verb && request.resource === resource).length;
  }

  /** Writes a kubeconfig for this server, with a token file if one is named. */
  writeKubeconfig(path: string, { tokenFile }: { readonly tokenFile?: string } = {}): void {
    const config = {
      apiVersion: 'v1',
      kind: 'Config',
      clusters: [
        {
          name: 'default',
          cluster: { server: this.url, 'certificate-authority-data': Buffer.from(this.ca).toString('base64') },
        },
      ],
      users: [{ name: 'default', user: { ...(tokenFile !== undefined && { tokenFile }) } }],
      contexts: [{ name: 'default', context: { cluster: 'default', user: 'default' } }],
      'current-context': 'default',
    };
    writeFileSync(path, JSON.stringify(config));
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { method = '', url = '', headers } = request;
    if (this.misbehave.stallAnswers) {
      this.stalled++;
      return;
    }
    const call = parseCall(method, url, this.misbehave);
    response.on('error', () => {});
    if (this.misbehave.latencyMs > 0) await sleep(this.misbehave.latencyMs, undefined, { ref: false });
    const apiVersion = call && apiVersionOf(call.resource);
    const chosen = chooseFormat(headers.accept, apiVersion, this.speaks);
    const format = chosen ?? JSON_FORMAT;
    const record = (type = format.type) => {
      const { verb, resource } = call ?? {};
      this.requests.push({ method, url, status: response.statusCode, type, verb, resource: resource?.name, headers });
    };
    const refuse = (code: number, message: string) => {
      response.statusCode = code;
      record();
      return this.#send(response, format.type, format.object(statusObject(code, message)));
    };

    const forced = this.misbehave.answers.shift();
    if (forced) {
      const { status, retryAfterSeconds, body, type = JSON_FORMAT.type } = forced;
      if (retryAfterSeconds !== undefined) response.setHeader('Retry-After', retryAfterSeconds);
      if (body === undefined) return refuse(status, 'as the test wanted');
      response.statusCode = status;
      record(type);
      return this.#send(response, type, body);
    }
    if (!this.#isAuthenticated(headers.authorization)) return refuse(401, 'Unauthorized');
    if (url === '/version' && this.gitVersion !== undefined) {
      const { gitVersion } = this;
      record(JSON_FORMAT.type);
      return this.#send(response, JSON_FORMAT.type, JSON.stringify({ gitVersion, platform: 'linux/amd64' }));
    }
    const discovered = call ? undefined : discoveryAt(url.split('?')[0]!, this.misbehave);
    if (discovered) {
      record(JSON_FORMAT.type);
      return this.#send(response, JSON_FORMAT.type, JSON.stringify(discovered));
    }
    if (!call) return refuse(404, 'the server could not find the requested resource');
    if (!isAllowed(call, this.misbehave)) {
      return refuse(403, forbiddenText(call));
    }
    if (!chosen) return refuse(406, 'only the following media types are accepted: application/json');
    switch (call.verb) {
      case 'list':
        return this.#list(call, response, format, record, refuse);
      case 'watch':
        return this.#watch(call, response, format, record, refuse);
      default:
        return this.#answerForObject(call, request, response, format, record);
    }
  }

  #isAuthenticated(authorization: string | undefined): boolean {
    const { tokens } = this.misbehave;
    return tokens === undefined || tokens.has(authorization?.replace(/^Bearer /, '') ?? '');
  }

  async #answerForObject(
    call: ApiCall,
    request: IncomingMessage,
    response: ServerResponse,
    format: WireFormat,
    record: Recorder,
  ): Promise<void> {
    const content = { type: request.headers['content-type'], text: await readAll(request) };
    const { code, body } = this.#outcomeOf(call, content);
    response.statusCode = code;
    record();
    if (this.misbehave.lostAnswers > 0) {
      this.misbehave.lostAnswers--;
      response.destroy();
      return;
    }
    await this.#send(response, format.type, format.object(body));
  }

  #outcomeOf(call: ApiCall, content: Content): Outcome {
    const creation = { ...call, verb: 'create' } as const;
    try {
      if (this.#objectRequests.isCreatingApply(call) && !isAllowed(creation, this.misbehave)) {
        throw new Refusal(403, forbiddenText(creation));
      }
      return this.#objectRequests.answer(call, content);
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      return { code: error.code, body: statusObject(error.code, error.message, error.reason) };
    }
  }

  async #list(
    call: ApiCall,
    response: ServerResponse,
    format: WireFormat,
    record: Recorder,
    refuse: Refuse,
  ): Promise<void> {
    const { query, resource } = call;
    const token = query.get('continue') ?? '';
    const isContinued = token !== '';
    const expired = isContinued && (this.misbehave.expireContinueTokens || !this.#snapshots.has(token));
    if (expired) return refuse(410, 'The provided continue parameter is too old');
    const matching = () => this.history.objects(resource).filter(selectorOf(call));
    const { items, version } = this.#snapshots.get(token) ?? { items: matching(), version: this.history.version };
    this.#snapshots.delete(token);

    const limit = Number(query.get('limit') ?? 0) || items.length;
    const rest = items.slice(limit);
    const next = rest.length > 0 ? `${resource.name}-${version}-${rest.length}-${this.requests.length}` : '';
    if (next !== '') this.#snapshots.set(next, { items: rest, version });
    record();
    const list = {
      kind: `${resource.kind}List`,
      apiVersion: apiVersionOf(resource),
      metadata: { resourceVersion: String(version), ...(next !== '' && { continue: next }) },
      items: items.slice(0, limit),
    };
    await this.#send(response, format.type, format.list(list));
  }

  async #watch(
    call: ApiCall,
    response: ServerResponse,
    format: WireFormat,
    record: Recorder,
    refuse: Refuse,
  ): Promise<void> {
    const { query, resource } = call;
    const { misbehave, history } = this;
    const wantsInitial = query.get('sendInitialEvents') === 'true';
    if (wantsInitial && !misbehave.streamingLists) {
      return refuse(422, 'sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled');
    }
    const named = query.get('resourceVersion') ?? '';
    const tooOld = named !== '' && (misbehave.refuseWatchVersions !== undefined || Number(named) < history.compacted);
    const tooOldText = `too old resource version: ${named} (${history.version})`;
    if (tooOld && misbehave.refuseWatchVersions === 'header') return refuse(410, tooOldText);

    response.writeHead(200, { 'Content-Type': format.watchType });
    response.flushHeaders();
    record(format.watchType);
    const watch = new Watch(response, history, {
      resource,
      selector: selectorOf(call),
      format,
      from: named === '' ? history.version : Number(named),
      bookmarks: query.get('allowWatchBookmarks') === 'true',
      timeoutSeconds: Number(query.get('timeoutSeconds') ?? 1800),
      isStalled: () => misbehave.stallWatches,
    });
    if (tooOld) return watch.error(statusObject(410, tooOldText));
    this.#watches.add(watch);
    response.on('close', () => this.#watches.delete(watch));
    if (wantsInitial) await watch.sendInitialEvents(!misbehave.endlessLists.has(resource.name));
    watch.start();
    if (misbehave.cutWatchesAfterMs !== undefined) watch.after(misbehave.cutWatchesAfterMs, () => watch.reset(true));
  }

  async #send(response: ServerResponse, type: string, content: string | Uint8Array): Promise<void> {
    response.setHeader('Content-Type', type);
    const { slow } = this.misbehave;
    const body = typeof content === 'string' ? Buffer.from(content) : content;
    const step = slow?.bytes ?? body.length;
    for (let at = 0; slow && at < body.length && !response.destroyed; at += step) {
      response.write(body.subarray(at, at + step));
      await sleep(slow.pauseMs, undefined, { ref: false });
    }
    response.end(slow ? undefined : body);
  }
}

function forbiddenText(call: Pick<ApiCall, 'verb' | 'resource' | 'ofStatus'>): string {
  const { verb, resource } = call;
  return `User "test" cannot ${verb} resource "${permissionOf(call)}" in API group "${resource.group}"`;
}

/** What the fake itself cannot do is told to the client, and by it to whoever reads the failed test. */
function breakDown(response: ServerResponse, error: Error): void {
  if (response.headersSent) return void response.destroy(error);
  response.writeHead(500, { 'Content-Type': JSON_FORMAT.type });
  response.end(JSON_FORMAT.object(statusObject(500, error.message)));
}

/** @param type the Content-Type of the answer. @default that of the format */
type Recorder = (type?: string) => void;
type Refuse = (code: number, message: string) => Promise<void>;

function selectorOf({ query, namespace }: ApiCall): Selector {
  const byLabel = labelSelector(query.get('labelSelector') ?? '');
  const byField = fieldSelector(query.get('fieldSelector') ?? '');
  const inNamespace = (object: ApiObject) => namespace === undefined || keyOf(object).startsWith(`${namespace}/`);
  return (object) => inNamespace(object) && byLabel(object) && byField(object);
}

async function readAll(request: IncomingMessage): Promise<string> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of request) chunks.push(chunk as Uint8Array);
  return Buffer.concat(chunks).toString('utf8');
}
