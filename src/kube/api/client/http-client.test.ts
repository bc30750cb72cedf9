import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { apiNode, FakeApiServer } from '../../../../test/fakes/api-server/index.ts';
import { FakeClock } from '../../../../test/fakes/fake-clock.ts';
import { exec } from '../../../sys/index.ts';
import type { ApiClient } from './api-client.ts';
import { type ApiClientOptions, createApiClient } from './http-client.ts';
import type { ApiObservation } from './observation.ts';

const folder = mkdtempSync(join(tmpdir(), 'nodeplane-api-client-'));
const kubeconfig = join(folder, 'kubeconfig');
let server: FakeApiServer;
let clients: ApiClient[];
let observed: ApiObservation[];

beforeEach(async () => {
  server = new FakeApiServer();
  await server.start();
  server.apply(apiNode('node-1'));
  clients = [];
  observed = [];
});

afterEach(async () => {
  for (const client of clients) client.close();
  await server.stop();
});

afterAll(() => rmSync(folder, { recursive: true }));

async function connect(options: Partial<ApiClientOptions> = { kubeconfig }): Promise<ApiClient> {
  const observe = (observation: ApiObservation) => observed.push(observation);
  const client = await createApiClient({ userAgent: 'kube-proxy/v0', observe, runProgram: exec, ...options });
  clients.push(client);
  return client;
}

async function read(client: ApiClient, path = '/api/v1/nodes', signal = new AbortController().signal): Promise<string> {
  const { body } = await client.send({ method: 'GET', path, signal });
  const chunks: Uint8Array[] = [];
  for await (const chunk of body) chunks.push(chunk);
  return Buffer.concat(chunks).toString('utf8');
}

function write(name: string, content: string): string {
  const path = join(folder, name);
  writeFileSync(path, content);
  return path;
}

/** A kubeconfig with the given parts of the cluster and the user. */
function writeConfig(cluster: object, user: object): void {
  const config = {
    clusters: [{ name: 'c', cluster: { server: server.url, ...cluster } }],
    users: [{ name: 'u', user }],
    contexts: [{ name: 'x', context: { cluster: 'c', user: 'u' } }],
    'current-context': 'x',
  };
  writeFileSync(kubeconfig, JSON.stringify(config));
}

const ca = () => ({ 'certificate-authority-data': Buffer.from(server.ca).toString('base64') });
const codes = () =>
  observed.filter((o) => o.kind !== 'credentialPlugin').map((o) => (o.kind === 'request' ? o.code : o.kind));
const authorization = () => server.requests.at(-1)!.headers.authorization;

it('asks no more often than it may, and tells of long waits', async () => {
  server.writeKubeconfig(kubeconfig);
  const clock = new FakeClock();
  const client = await connect({ kubeconfig, clock, rate: { qps: 0.5, burst: 2 } });
  await Promise.all([read(client), read(client)]);
  const third = read(client);
  expect(server.count('list', 'nodes')).toBe(2);
  await clock.advance(2000);
  await third;
  expect(server.count('list', 'nodes')).toBe(3);
  // Further pages of a list belong to its first.
  const signal = new AbortController().signal;
  const page = await client
    .send({ method: 'GET', path: '/api/v1/nodes', query: { continue: 'x' }, signal })
    .catch(String);
  expect(page).toContain('answered 4');
  expect(observed).toContainEqual({ kind: 'heldBack', method: 'GET', path: '/api/v1/nodes', seconds: 2 });
});

describe('credentials', () => {
  it('are a token file as kubeadm’s kube-proxy has it, read again for every request', async () => {
    write('token', 'first\n');
    write('ca.crt', server.ca);
    writeConfig({ 'certificate-authority': 'ca.crt' }, { tokenFile: 'token', token: 'ignored' });
    server.misbehave.tokens = new Set(['first']);
    const client = await connect();
    expect(JSON.parse(await read(client))).toMatchObject({ items: [{ metadata: { name: 'node-1' } }] });
    server.misbehave.tokens = new Set(['second']);
    write('token', 'second');
    await read(client);
    expect(codes()).toEqual([200, 200]);
  });

  it('are renewed after a 401, once', async () => {
    // A plugin whose credential is good for an hour, as far as it says.
    const plugin = write(
      'plugin',
      `#!/bin/sh
test -n "$KUBERNETES_EXEC_INFO" || exit 1
echo '{"kind":"ExecCredential","status":{"token":"'"$(cat ${folder}/plugin-token)"'","expirationTimestamp":"2999-01-01T00:00:00Z"}}'
`,
    );
    chmodSync(plugin, 0o755);
    write('plugin-token', 'first');
    writeConfig(ca(), { exec: { apiVersion: 'client.authentication.k8s.io/v1', command: './plugin' } });
    server.misbehave.tokens = new Set(['first']);
    const client = await connect();
    await read(client);
    expect(authorization()).toBe('Bearer first');

    server.misbehave.tokens = new Set(['second']);
    write('plugin-token', 'second');
    await read(client);
    expect(authorization()).toBe('Bearer second');
    expect(codes()).toEqual([200, 401, 200]);

    server.misbehave.tokens = new Set(['third']);
    await expect(read(client)).rejects.toMatchObject({ code: 'ERR_API', status: 401 });
    expect(codes().slice(3)).toEqual([401, 401]);
  });

  describe('of a plugin', () => {
    const runs = () => readFileSync(join(folder, 'runs'), 'utf8').split('\n').length - 1;

    /** A kubeconfig whose plugin is this script; each run leaves a line with its number of process. */
    function plugin(script: string, further: object = {}): void {
      write('runs', '');
      chmodSync(write('plugin', `#!/bin/sh\necho $$ >> ${folder}/runs\n${script}\n`), 0o755);
      writeConfig(ca(), {
        exec: { apiVersion: 'client.authentication.k8s.io/v1', command: './plugin', args: ['--verbose'], ...further },
      });
    }

    /** The real thing, in less time. */
    const impatient: typeof exec = (program, args, options) => exec(program, args, { ...options, timeoutMs: 2000 });

    it('that hangs come to an end, with its name; all requests wait for one run', { timeout: 30_000 }, async () => {
      plugin('sleep 1000 & sleep 1000');
      const client = await connect({ kubeconfig, runProgram: impatient });
      const outcomes = await Promise.allSettled([read(client), read(client), read(client)]);
      for (const outcome of outcomes) {
        expect(outcome).toMatchObject({
          reason: { code: 'ERR_API', message: expect.stringContaining(`${folder}/plugin`) },
        });
        expect(outcome).toMatchObject({ reason: { message: expect.stringMatching(/did not end within 2000 ms/) } });
      }
      expect(runs()).toBe(1);
      expect(observed.map((o) => o.kind === 'credentialPlugin' && o.state)).toEqual(['failed']);
    });

    it('that hangs are told after 5 s, keep no request that is given up, and end with the client', {
      timeout: 30_000,
    }, async () => {
      plugin('exec sleep 1000');
      const clock = new FakeClock();
      const client = await connect({ kubeconfig, clock });
      const controller = new AbortController();
      const reading = read(client, '/api/v1/nodes', controller.signal);
      reading.catch(() => {});
      await vi.waitFor(() => expect(runs()).toBe(1), 20_000);
      await clock.advance(5000);
      expect(observed).toMatchObject([{ kind: 'credentialPlugin', state: 'running', command: join(folder, 'plugin') }]);
      controller.abort();
      await expect(reading).rejects.toThrow('stopped');
      const pid = readFileSync(join(folder, 'runs'), 'utf8').trim();
      expect(existsSync(`/proc/${pid}`)).toBe(true);
      client.close();
      await vi.waitFor(() => expect(existsSync(`/proc/${pid}`)).toBe(false), 20_000);
    });

    it.each([
      ['garbage', 'echo "{ garbage"', 'what it printed, 10 characters, is no JSON'],
      ['10 MB', 'yes | head -c 10000000', 'printed more than 1048576 bytes and was killed'],
      ['a failure', 'echo not logged in >&2; exit 3', 'it ended with status 3: "not logged in"'],
      ['nothing to use', `echo '{"status":{}}'`, 'neither token nor clientCertificateData'],
      ['half a certificate', `echo '{"status":{"clientCertificateData":"x"}}'`, 'only one of clientCertificateData'],
      ['no time', `echo '{"status":{"token":"s3cret","expirationTimestamp":"soon"}}'`, '"soon" is no time'],
      ['another version', `echo '{"apiVersion":"v9","status":{"token":"s3cret"}}'`, 'it answered in v9'],
    ])('that gives %s are refused with the reason, and without what is secret', async (_, script, reason) => {
      plugin(script);
      const client = await connect();
      const failure = await read(client).catch((error: Error) => error);
      expect(failure).toMatchObject({ code: 'ERR_API', message: expect.stringContaining(reason) });
      expect(String(failure)).not.toContain('s3cret');
    });

    it('are kept until they expire', async () => {
      const clock = new FakeClock(Date.parse('2026-11-22T00:00:00Z'));
      plugin(`echo '{"status":{"token":"good","expirationTimestamp":"2026-11-22T01:00:00Z"}}'`);
      server.misbehave.tokens = new Set(['good']);
      const client = await connect({ kubeconfig, clock });
      for (let i = 0; i < 3; i++) await read(client);
      expect(runs()).toBe(1);
      await clock.advance(3_600_000);
      await read(client);
      expect(runs()).toBe(2);
    });

    it('that want to ask a person, or of providers that are gone, are refused at the start', async () => {
      plugin('', { interactiveMode: 'Always' });
      await expect(connect()).rejects.toMatchObject({ code: 'ERR_CONFIG' });
      writeConfig(ca(), { 'auth-provider': { name: 'gcp', config: { 'cmd-path': '/bin/sleep', 'cmd-args': '1000' } } });
      await expect(connect()).rejects.toMatchObject({ code: 'ERR_CONFIG' });
    });
  });

  it('are renewed even if the kubeconfig is unreadable for a moment', async () => {
    write('token', 'old');
    writeConfig(ca(), { tokenFile: 'token' });
    server.misbehave.tokens = new Set(['new']);
    const client = await connect();
    writeFileSync(kubeconfig, '{');
    await expect(read(client)).rejects.toMatchObject({ status: 401 });
    write('token', 'new');
    await read(client);
  });

  it('are the service account in a pod', async () => {
    const serviceAccountFolder = join(folder, 'serviceaccount');
    mkdirSync(serviceAccountFolder, { recursive: true });
    write('serviceaccount/token', 'of-the-pod');
    write('serviceaccount/ca.crt', server.ca);
    server.misbehave.tokens = new Set(['of-the-pod']);
    const { hostname, port } = new URL(server.url);
    const env = { KUBERNETES_SERVICE_HOST: hostname, KUBERNETES_SERVICE_PORT: port };
    await read(await connect({ env, serviceAccountFolder }));
  });

  it('of a file that is missing are an error of the request, and found when they are there', async () => {
    rmSync(join(folder, 'token'), { force: true });
    writeConfig(ca(), { tokenFile: 'token' });
    const client = await connect();
    await expect(read(client)).rejects.toMatchObject({ code: 'ERR_API', message: expect.stringContaining('ENOENT') });
    write('token', 'x');
    await read(client);
  });
});

describe('the server', () => {
  it('of the kubeconfig is overridden by --master', async () => {
    writeConfig({ ...ca(), server: 'https://192.0.2.1:6443' }, {});
    await read(await connect({ kubeconfig, master: server.url }));
  });

  it('may be plain HTTP, below a path, without authentication', async () => {
    const urls: (string | undefined)[] = [];
    const plain = http.createServer((request, response) => {
      urls.push(request.url);
      response.end('{}');
    });
    await new Promise<void>((resolve) => plain.listen(0, '127.0.0.1', resolve));
    const { port } = plain.address() as AddressInfo;
    await read(await connect({ master: `127.0.0.1:${port}/cluster/` }));
    await read(await connect({ master: `http://127.0.0.1:${port}` }));
    expect(urls).toEqual(['/cluster/api/v1/nodes', '/api/v1/nodes']);
    plain.closeAllConnections();
    await new Promise((resolve) => plain.close(resolve));
  });

  it('has to prove its identity', async () => {
    const other = new FakeApiServer();
    writeConfig({ 'certificate-authority-data': Buffer.from(other.ca).toString('base64') }, {});
    await expect(read(await connect())).rejects.toThrow(/certificate/);
    expect(codes()).toEqual(['<error>']);
    writeConfig({ 'insecure-skip-tls-verify': true }, {});
    await read(await connect());
  });

  it.each([
    [{ kubeconfig: '/nonexistent' }, 'Cannot read the kubeconfig "/nonexistent"'],
    [
      { env: {} },
      'KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set; give --kubeconfig, or run in a pod',
    ],
    [{ master: 'ftp://x' }, 'Cannot use --master: "ftp://x" is not the http or https URL of an API server'],
  ])('%j is a configuration error', async (options, message) => {
    await expect(connect(options)).rejects.toMatchObject({
      code: 'ERR_CONFIG',
      message: expect.stringContaining(message),
    });
  });

  it.each([
    ['{}', 'Cannot read the kubeconfig'],
    ['[', 'Cannot read the kubeconfig'],
    ['clusters: [{name: c}]', 'Cannot read the kubeconfig'],
  ])('of the kubeconfig %j is a configuration error', async (content, message) => {
    writeFileSync(kubeconfig, content);
    await expect(connect()).rejects.toMatchObject({ code: 'ERR_CONFIG', message: expect.stringContaining(message) });
  });
});

describe('requests', () => {
  beforeEach(() => writeConfig(ca(), {}));

  it('share a connection, say who we are, and are observed', async () => {
    const client = await connect();
    await read(client);
    await read(client);
    const { host } = new URL(server.url);
    expect(observed[0]).toEqual({
      kind: 'request',
      method: 'GET',
      host,
      code: 200,
      seconds: expect.any(Number),
      watch: false,
    });
    expect(server.requests[0]!.headers).toMatchObject({ 'user-agent': 'kube-proxy/v0', accept: 'application/json' });
    expect(server.connections).toBe(1);
  });

  it.each([
    [{}, true, 'application/vnd.kubernetes.protobuf, application/json'],
    [{}, false, 'application/json'],
    [{ protobuf: false }, true, 'application/json'],
  ])('ask for protobuf where it is wanted and can be read (%j, %j)', async (options, readsProtobuf, accept) => {
    const client = await connect({ kubeconfig, ...options });
    const { signal } = new AbortController();
    const { contentType, body } = await client.send({ method: 'GET', path: '/api/v1/services', readsProtobuf, signal });
    for await (const _ of body);
    expect(server.requests[0]!.headers.accept).toBe(accept);
    expect(contentType).toBe(accept.split(',')[0]);
  });

  it('that are refused in protobuf say why', async () => {
    const client = await connect();
    const { signal } = new AbortController();
    const attempt = client.send({ method: 'GET', path: '/api/v1/nodes/none', readsProtobuf: true, signal });
    await expect(attempt).rejects.toMatchObject({
      reason: 'NotFound',
      message: `GET ${server.url}/api/v1/nodes/none: the API server answered 404: nodes "none" not found`,
    });
  });

  it('that are refused say why', async () => {
    const client = await connect();
    await expect(read(client, '/api/v1/nodes/none')).rejects.toMatchObject({
      status: 404,
      message: `GET ${server.url}/api/v1/nodes/none: the API server answered 404: nodes "none" not found`,
    });
    const html = `<html>\n${'x'.repeat(1_000)}`;
    server.misbehave.answers.push({ status: 503, body: html, retryAfterSeconds: 3 });
    await expect(read(client)).rejects.toMatchObject({
      status: 503,
      retryAfterMs: 3_000,
      message: expect.stringMatching(/answered 503: <html> x{293}…$/),
    });
  });

  it('are given up after a minute of silence, before or in the answer', async () => {
    const clock = new FakeClock();
    const client = await connect({ kubeconfig, clock });
    server.misbehave.stallAnswers = true;
    const unanswered = read(client);
    unanswered.catch(() => {});
    await vi.waitFor(() => expect(server.connections).toBe(1));
    // Time stands still until the request has been received.
    await vi.waitFor(() => expect(server.stalled).toBe(1));
    await clock.advance(60_000);
    await expect(unanswered).rejects.toThrow('no byte for 60 s');

    server.misbehave.stallAnswers = false;
    server.misbehave.slow = { bytes: 10, pauseMs: 3_600_000 };
    const response = await client.send({ method: 'GET', path: '/api/v1/nodes', signal: new AbortController().signal });
    const body = response.body[Symbol.asyncIterator]();
    expect((await body.next()).value).toHaveLength(10);
    const next = body.next();
    next.catch(() => {});
    await clock.advance(59_000);
    await clock.advance(1_000);
    await expect(next).rejects.toThrow('no byte for 60 s');
  });

  it('end with their signal', async () => {
    const client = await connect();
    server.misbehave.stallAnswers = true;
    const stop = new AbortController();
    const unanswered = read(client, '/api/v1/nodes', stop.signal);
    unanswered.catch(() => {});
    await vi.waitFor(() => expect(server.stalled).toBe(1));
    stop.abort();
    await expect(unanswered).rejects.toMatchObject({ code: 'ERR_API' });
    await expect(read(client, '/api/v1/nodes', stop.signal)).rejects.toMatchObject({ code: 'ERR_API' });
  });
});
