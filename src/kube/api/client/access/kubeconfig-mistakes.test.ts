import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { makeCertificate } from '../../../../../test/fakes/api-server/certificate.ts';
import { FakeApiServer } from '../../../../../test/fakes/api-server/index.ts';
import { errorText } from '../../../../core/index.ts';
import { exec } from '../../../../sys/index.ts';
import type { ApiClient } from '../api-client.ts';
import { createApiClient } from '../http-client.ts';
import { remedyOfFailure, remedyOfStatus } from './failure-remedy.ts';
import { expiryOf } from './pem.ts';

// What an operator can get wrong in a kubeconfig. Each mistake is refused, at the start or at the first request, in a line that
// names the field, what was found there, and what to do.

const folder = mkdtempSync(join(tmpdir(), 'nodeplane-kubeconfig-'));
const path = join(folder, 'kubeconfig');
const empty = join(folder, 'empty');
writeFileSync(empty, '');
const server = new FakeApiServer();
const [mine, other] = [makeCertificate(), makeCertificate()];
const base64 = (text: string) => Buffer.from(text).toString('base64');
let client: ApiClient | undefined;

beforeAll(() => server.start());
afterEach(() => client?.close());
afterAll(async () => {
  await server.stop();
  rmSync(folder, { recursive: true });
});

/** A kubeconfig that is right but for what is given. */
interface Changes {
  readonly cluster?: object;
  readonly user?: object;
  readonly context?: object;
  readonly file?: object;
}

function write({ cluster, user, context, file }: Changes): void {
  const ca = { 'certificate-authority-data': base64(server.ca) };
  const config = {
    clusters: [{ name: 'c', cluster: { server: server.url, ...ca, ...cluster } }],
    users: [{ name: 'u', user: { token: 'secret', ...user } }],
    contexts: [{ name: 'x', context: { cluster: 'c', user: 'u', ...context } }],
    'current-context': 'x',
    ...file,
  };
  writeFileSync(path, JSON.stringify(config));
}

const connect = async () => {
  client = await createApiClient({ userAgent: 'test', kubeconfig: path, env: {}, runProgram: exec });
  return client;
};

async function failureOf(attempt: Promise<unknown>): Promise<string> {
  try {
    await attempt;
  } catch (error) {
    expect(error).toBeInstanceOf(Error);
    return errorText(error);
  }
  throw new Error('accepted');
}

const ask = async () => {
  const { body } = await (await connect()).send({
    method: 'GET',
    path: '/api/v1/nodes',
    signal: new AbortController().signal,
  });
  for await (const _ of body);
};

const absent = '/nonexistent/x';
const pair = { 'client-certificate-data': base64(mine.cert), 'client-key-data': base64(mine.key) };

describe('a mistake that shows in the file is refused at the start', () => {
  it.each<[Changes, ...string[]]>([
    [{ file: { 'current-context': undefined } }, 'current-context is missing', 'name one of contexts, which has "x"'],
    [
      { file: { 'current-context': undefined, currentContext: 'x' } },
      'current-context is missing',
      '"currentContext" of it is not read, did you mean "current-context"?',
    ],
    [
      { cluster: { server: undefined, sever: 'https://a' } },
      'clusters[0].cluster.server is missing',
      '"sever" of clusters "c" is not read, did you mean "server"?',
    ],
    [{ file: { 'current-context': 'y' } }, 'current-context is "y", which is not there', 'which has "x"'],
    [{ file: { contexts: [] } }, 'current-context is "x", which is not there', 'contexts, which has nothing'],
    [{ file: { contexts: { x: {} } } }, 'contexts is a mapping', 'write a list'],
    [{ file: { kind: 'ConfigMap' } }, 'kind is "ConfigMap", "Config" is needed', 'name the kubeconfig itself'],
    [{ context: { cluster: undefined } }, 'contexts "x": cluster is missing', 'name one of clusters, which has "c"'],
    [{ context: { cluster: 'd' } }, 'contexts "x": cluster is "d", which is not there', 'which has "c"'],
    [{ context: { user: 'v' } }, 'contexts "x": user is "v", which is not there', 'name one of users, which has "u"'],
    [{ cluster: { server: '' } }, 'clusters[0].cluster.server is missing', 'give the URL of the API server'],
    [
      { cluster: { server: '192.0.2.7:6443' } },
      '"192.0.2.7:6443" is not the http or https URL',
      'write "https://192.0.2.7:6443"',
    ],
    [{ cluster: { server: 'htps://a' } }, '"htps://a" is not the http or https URL', 'write "https://192.0.2.1:6443"'],
    [
      { cluster: { 'insecure-skip-tls-verify': true } },
      'clusters "c": insecure-skip-tls-verify and certificate-authority are both given',
      'take the first out',
    ],
    [
      { cluster: { 'certificate-authority': absent } },
      `certificate-authority ("${absent}") and certificate-authority-data are both given`,
      'take one of them out',
    ],
    [
      { cluster: { 'certificate-authority-data': '%%%' } },
      'certificate-authority-data is not base64 (it begins with "%%%")',
      'copy it whole',
    ],
    [
      { cluster: { 'certificate-authority-data': base64(server.ca).slice(0, -3) } },
      'certificate-authority-data is not base64',
      'copy it whole',
    ],
    [
      { cluster: { 'certificate-authority-data': server.ca } },
      'certificate-authority-data is not base64',
      'it is PEM itself',
    ],
    [
      { cluster: { 'certificate-authority-data': base64(base64(server.ca)) } },
      'certificate-authority-data holds no PEM',
      'it was encoded twice',
    ],
    [
      { cluster: { 'certificate-authority-data': base64('hello') } },
      'certificate-authority-data holds no PEM',
      'encode a file in PEM',
    ],
    [
      { user: { 'client-certificate-data': pair['client-certificate-data'] } },
      'users "u": client-certificate is given without client-key',
      'give both',
    ],
    [{ user: { 'client-key': absent } }, 'users "u": client-key is given without client-certificate', 'give both'],
    [
      { user: { ...pair, 'client-key-data': base64(other.key) } },
      'users "u": client-certificate and client-key do not belong together',
      'a pair that was made as one',
    ],
    [
      { user: { ...pair, 'client-key-data': base64('-----BEGIN nothing') } },
      'users "u": client-certificate and client-key',
      'a pair that was made as one',
    ],
    [{ user: { exec: { apiVersion: 'v1' } } }, 'users[].user.exec.command is missing', 'name the program'],
    [
      { user: { exec: { command: 'x' } } },
      'users[].user.exec.apiVersion is missing',
      'write "client.authentication.k8s.io/v1"',
    ],
  ])('%j', async (changes, ...told) => {
    write(changes);
    const failure = await failureOf(connect());
    expect(failure).toContain(path);
    for (const part of told) expect(failure).toContain(part);
    expect(failure).not.toContain('secret');
  });

  it.each([
    ['', 'it holds null instead of clusters'],
    ['- a', 'it holds a list instead of clusters'],
    ['clusters: [', 'at line 1'],
  ])('%j', async (text, told) => {
    writeFileSync(path, text);
    expect(await failureOf(connect())).toContain(told);
  });

  it('a file that is not there', async () => {
    const attempt = createApiClient({ userAgent: 'test', kubeconfig: absent });
    expect(await failureOf(attempt)).toMatch(/"\/nonexistent\/x": ENOENT.*; name one that is there, or mount it/);
  });
});

describe('a mistake that shows in use is told at each attempt', () => {
  const none = { 'certificate-authority-data': undefined };
  it.each<[Changes, ...string[]]>([
    [
      { cluster: { ...none, 'certificate-authority': absent } },
      `certificate-authority "${absent}" cannot be read (ENOENT`,
      'correct the path, or mount the file',
    ],
    [
      { cluster: { ...none, 'certificate-authority': path } },
      `certificate-authority "${path}" holds no PEM`,
      'name a file in PEM',
    ],
    [
      { user: { 'client-certificate': absent, 'client-key': absent } },
      `client-certificate "${absent}" cannot be read`,
      'or mount the file',
    ],
    [
      { user: { tokenFile: absent } },
      `tokenFile "${absent}" cannot be read (ENOENT`,
      'correct the path, or mount the file',
    ],
    [{ user: { tokenFile: empty } }, `tokenFile "${empty}" is empty`, 'write the token there, or name another file'],
    [
      { user: { tokenFile: '/dev/null' } },
      'tokenFile "/dev/null" cannot be read (it is a device, and a file is needed)',
      'correct the path, or mount the file',
    ],
    [
      { user: { exec: { apiVersion: 'v1', command: absent } } },
      `The credential plugin "${absent}"`,
      'ENOENT',
      'install it, or give its whole path',
    ],
    [
      { cluster: { 'certificate-authority-data': base64(mine.cert) } },
      'the certificate authority of the kubeconfig',
      'has not signed this server’s certificate',
      'put the cluster’s own into',
    ],
    [
      { cluster: none },
      'self-signed certificate',
      'put the cluster’s own into clusters[].cluster.certificate-authority-data',
    ],
    [
      { cluster: { 'certificate-authority-data': undefined, 'certificate-autority-data': base64(server.ca) } },
      '"certificate-autority-data" of clusters "c" is not read, did you mean "certificate-authority-data"?',
    ],
    [{ cluster: { 'tls-server-name': 'elsewhere' } }, 'elsewhere', 'give the kubeconfig', 'tls-server-name'],
  ])('%j', async (changes, ...told) => {
    write(changes);
    const failure = await failureOf(ask());
    for (const part of told) expect(failure).toContain(part);
    expect(failure).not.toContain('secret');
  });

  it('a client certificate that does not belong to its key, in files', async () => {
    writeFileSync(join(folder, 'u.crt'), mine.cert);
    writeFileSync(join(folder, 'u.key'), other.key);
    write({ user: { 'client-certificate': 'u.crt', 'client-key': 'u.key' } });
    expect(await failureOf(ask())).toContain('give a pair that was made as one');
  });

  it('a port that does not speak TLS', async () => {
    const http = await import('node:http');
    const plain = http.createServer((_, response) => response.end('{}'));
    await new Promise<void>((resolve) => plain.listen(0, '127.0.0.1', resolve));
    const { port } = plain.address() as { port: number };
    write({ cluster: { server: `https://127.0.0.1:${port}` } });
    try {
      expect(await failureOf(ask())).toContain(
        `127.0.0.1:${port} does not answer in TLS: write its port of HTTPS, or http://`,
      );
    } finally {
      plain.closeAllConnections();
      await new Promise((resolve) => plain.close(resolve));
    }
  });

  it('a context without a user, or a token under another name, when the server wants one', async () => {
    server.misbehave.tokens = new Set(['another']);
    write({ context: { user: undefined } });
    expect(await failureOf(ask())).toMatch(
      /401.*; the kubeconfig ".*" gives neither token nor client certificate: name a user/,
    );
    write({ user: { token: undefined, tokn: 'secret' } });
    expect(await failureOf(ask())).toMatch(/401.*; "tokn" of users "u" is not read, did you mean "token"\?$/);
    server.misbehave.tokens = undefined;
  });
});

it('an expired client certificate is named with its date', () => {
  const day = 86_400_000;
  const now = Date.now();
  expect(expiryOf(mine.cert, now)).toBeUndefined();
  expect(expiryOf(mine.cert, now + 2 * day)).toMatch(/^the client certificate has expired on .+; renew it$/);
  expect(expiryOf(mine.cert, now - 2 * day)).toMatch(/^the client certificate is not valid before .+; set the clock/);
  const asked = {
    source: 'the kubeconfig',
    server: new URL('https://a'),
    options: { cert: mine.cert },
    now: now + 2 * day,
  };
  expect(remedyOfStatus(401, asked)).toContain('renew it');
  expect(remedyOfStatus(403, asked)).toBe('');
  const expired = Object.assign(new Error('certificate has expired'), { code: 'CERT_HAS_EXPIRED' });
  expect(remedyOfFailure(expired, asked)).toContain('set it, or renew the server’s certificate');
});
