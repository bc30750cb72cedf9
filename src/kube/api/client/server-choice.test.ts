import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { FakeApiServer } from '../../../../test/fakes/api-server/index.ts';
import type { ApiClient } from './api-client.ts';
import { type ApiClientOptions, createApiClient } from './http-client.ts';

const folder = mkdtempSync(join(tmpdir(), 'nodeplane-server-choice-'));
const kubeconfig = join(folder, 'kubeconfig');
const server = new FakeApiServer();
const clients: ApiClient[] = [];

beforeAll(() => server.start());
afterAll(async () => {
  for (const client of clients) client.close();
  await server.stop();
  rmSync(folder, { recursive: true });
});

async function connect(options: Partial<ApiClientOptions>): Promise<ApiClient> {
  const client = await createApiClient({ userAgent: 'test', ...options });
  clients.push(client);
  return client;
}

async function read(client: ApiClient): Promise<void> {
  const { signal } = new AbortController();
  const { body } = await client.send({ method: 'GET', path: '/api/v1/nodes', signal });
  for await (const _ of body);
}

const write = (name: string, content: string) => writeFileSync(join(folder, name), content);

describe('the way to the API server', () => {
  it('is looked for in order: kubeconfig, NODEPLANE_API_SERVER, that of kubeadm, and the ClusterIP last', async () => {
    const serviceAccountFolder = join(folder, 'serviceaccount');
    mkdirSync(serviceAccountFolder, { recursive: true });
    write('serviceaccount/token', 'of-the-pod');
    write('serviceaccount/ca.crt', server.ca);
    server.writeKubeconfig(kubeconfig);
    const ours = join(folder, 'ours.conf');
    writeFileSync(ours, readFileSync(kubeconfig));
    const clusterIp = { KUBERNETES_SERVICE_HOST: '192.0.2.1', KUBERNETES_SERVICE_PORT: '443' };
    const env = { ...clusterIp, NODEPLANE_API_SERVER: new URL(server.url).host };
    const none = join(folder, 'none');
    const sourceOf = async (options: Partial<ApiClientOptions>) => {
      let source = '';
      const chosen: ApiClientOptions['chosen'] = (access) => {
        source = `${access.source} ${access.server.host === new URL(server.url).host ? 'ours' : access.server.host}`;
      };
      await connect({ serviceAccountFolder, kubeadmKubeconfig: kubeconfig, env, chosen, ...options });
      return source;
    };
    expect(await sourceOf({ kubeconfig: ours })).toBe(`the kubeconfig "${ours}" ours`);
    expect(await sourceOf({})).toBe('NODEPLANE_API_SERVER ours');
    expect(await sourceOf({ env: clusterIp })).toBe(`the kubeconfig "${kubeconfig}" ours`);
    expect(await sourceOf({ env: clusterIp, kubeadmKubeconfig: none })).toBe('the pod’s environment 192.0.2.1');
    server.misbehave.tokens = new Set(['of-the-pod']);
    await read(await connect({ serviceAccountFolder, env }));
  });

  it.each<[string, (right: string) => string]>([
    ['address', (right) => right.replaceAll(server.url, 'https://127.0.0.1:1')],
    [
      'certificate authority',
      (right) => right.replaceAll(/(certificate-authority-data"?: *"?)[\w+/=]+/g, `$1${btoa(new FakeApiServer().ca)}`),
    ],
  ])('is found when the kubeconfig is put right, which had a wrong %s', async (_, spoil) => {
    server.misbehave.tokens = undefined;
    server.writeKubeconfig(kubeconfig);
    const right = readFileSync(kubeconfig, 'utf8');
    expect(spoil(right)).not.toBe(right);
    write('kubeconfig', spoil(right));
    const chosen: string[] = [];
    const client = await connect({ kubeconfig, chosen: (access) => void chosen.push(access.server.origin) });
    const isRefused = () => expect(read(client)).rejects.toMatchObject({ code: 'ERR_API' });
    await isRefused();
    write('kubeconfig', '{');
    await isRefused();
    write('kubeconfig', right);
    await isRefused();
    await read(client);
    expect(chosen).toHaveLength(2);
    expect(chosen[1]).toBe(new URL(server.url).origin);
  });

  it('leads through the proxy of the environment, unless NO_PROXY has the server', async () => {
    const asked: string[] = [];
    const proxy = http.createServer().on('connect', (request, socket) => {
      asked.push(request.url!);
      socket.end('HTTP/1.1 502 Bad Gateway\r\n\r\n');
    });
    await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve));
    const env = { https_proxy: `http://user:secret@127.0.0.1:${(proxy.address() as AddressInfo).port}` };
    server.writeKubeconfig(kubeconfig);
    writeFileSync(kubeconfig, readFileSync(kubeconfig, 'utf8').replace(server.url, 'https://api.invalid:6443'));
    await expect(read(await connect({ kubeconfig, env }))).rejects.toMatchObject({ code: 'ERR_API' });
    expect(asked).toEqual(['api.invalid:6443']);
    // A name that nobody resolves yet is an error of the request alone.
    const direct = await connect({ kubeconfig, env: { ...env, NO_PROXY: '.invalid' } });
    await expect(read(direct)).rejects.toMatchObject({
      code: 'ERR_API',
      message: expect.stringContaining('api.invalid'),
    });
    expect(asked).toHaveLength(1);
    await new Promise((resolve) => proxy.close(resolve));
  });
});
