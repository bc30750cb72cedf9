import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Answer, CauseCode } from '../../../src/explain/index.ts';
import type { ServiceCIDR } from '../../../src/kube/index.ts';
import { makeService, makeSlice } from '../../fakes/service-objects.ts';
import { type Host, removeAll } from '../lab.ts';
import { patient } from '../patience.ts';
import { ExplainWorld, on, served } from './explain-world.ts';
import { answers, Faults } from './faults.ts';

// Rules have several ways for one packet, of which some lead to an endpoint and some do not: each verdict is held
// against many connections.

const ONE = '10.96.0.11';
const TWO = '10.96.0.12';
/** Five endpoints in eight slots. */
const FIVE = '10.96.0.15';
const EXTERNAL = '203.0.113.12';
const [PORT_OF_TWO, PORT_OF_FAR, PORT_OF_BOTH] = [30_012, 30_007, 30_008];
/** Of no Service. */
const NOBODYS = '10.96.9.99';
const SERVICE_RANGE = '10.96.0.0/16';
/** Longer than the questions of a test take, so that what is broken is not mended meanwhile. */
const MIN_SYNC_SECONDS = 20;
/** All alike by chance: once in a hundred thousand, where an eighth of the packets ends elsewhere thrice. */
const TRIES = 24;

const world = new ExplainWorld();
const faults = new Faults(world);
const { node, other, web, web2, far, client, outside } = world;

beforeAll(async () => {
  const config = join(world.lab.folder, 'config.yaml');
  writeFileSync(
    config,
    `apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
mode: nftables
clusterCIDR: 10.244.0.0/16,fd00:10:244::/48
nftables: { minSyncPeriod: ${MIN_SYNC_SECONDS}s }
`,
  );
  const range: ServiceCIDR = {
    kind: 'ServiceCIDR',
    metadata: { name: 'services', namespace: '' },
    spec: { cidrs: [SERVICE_RANGE] },
  };
  const ports = [8071, 8072, 8073, 8074, 8075];
  for (const port of ports) await web.serve({ port });
  const nodePort = (number: number) => ({ type: 'NodePort', ports: [{ port: 80, nodePort: number }] }) as const;
  const [here, here2, there] = [on(node, web.ip()), on(node, web2.ip()), on(other, far.ip())];
  await world.begin(
    [
      range,
      ...served('shop/one', ONE, [here]),
      ...served('shop/two', TWO, [here, here2], { ...nodePort(PORT_OF_TWO), externalIPs: [EXTERNAL] }),
      makeService('shop/five', { clusterIP: FIVE }),
      ...ports.map((port) => makeSlice('shop/five', [here], { suffix: `s${port}`, ports: [{ port }] })),
      ...served('shop/far', '10.96.0.17', [there], nodePort(PORT_OF_FAR)),
      ...served('shop/both', '10.96.0.18', [here, there], nodePort(PORT_OF_BOTH)),
    ],
    '--config',
    config,
  );
}, 300_000);
afterAll(async () => {
  await world.end();
  removeAll();
});

async function ask(from: Host, ip: string, port = 80): Promise<Answer> {
  const source = from === node ? 'node' : from.ip();
  const [answer] = await world.askHere([{ destination: `${ip}:${port}`, source }]);
  return answer!;
}

/** What many connections come to. */
async function really(from: Host, ip: string, port = 80): Promise<Answer['verdict']> {
  const outcomes = await from.connectMany({ ip, port }, TRIES, { timeoutMs: 800, concurrency: 12 });
  const good = outcomes.filter(({ kind }) => kind === 'answered').length;
  return good === 0 ? 'fails' : good < TRIES ? 'partly' : 'works';
}

async function expectTrue(verdict: Answer['verdict'], code: CauseCode, from: Host, ip: string, port = 80) {
  const answer = await ask(from, ip, port);
  expect(answer, answer.cause).toMatchObject({ verdict, code });
  expect(await really(from, ip, port)).toBe(verdict);
  return answer;
}

// In front of all else: the agent has just written, and mends nothing for a while.
describe('our own chains, changed by somebody', () => {
  const TABLE = ['ip', 'nodeplane'];
  const insert = (chain: string, rule: string) =>
    world.run('nft', 'insert', 'rule', ...TABLE, chain, ...rule.split(' '));
  const listed = (chain: string) => world.run('nft', '-a', 'list', 'chain', ...TABLE, chain);
  const isMended = () => expect.poll(() => listed('endpoints-2'), { timeout: patient(60_000) }).not.toMatch(/ drop/);

  it('drift: some ways end in front of the endpoints', async () => {
    insert('endpoints-1', 'limit rate over 1/hour drop');
    insert('endpoints-2', 'numgen random mod 2 == 0 drop');
    insert('external-2', 'numgen random mod 2 == 0 accept');
    insert('nodeport-2', 'numgen random mod 2 == 0 return');
    const [, ...draws] = [...listed('endpoints-8').matchAll(/numgen.* handle (\d+)$/gm)].map(([, handle]) => handle!);
    for (const handle of draws) world.run('nft', 'delete', 'rule', ...TABLE, 'endpoints-8', 'handle', handle);
    const limited = await ask(client, ONE);
    expect(limited.verdict, limited.cause).toBe('unknown');
    await expectTrue('partly', 'drift', client, TWO);
    await expectTrue('partly', 'drift', client, EXTERNAL);
    await expectTrue('partly', 'drift', client, node.ip(), PORT_OF_TWO);
    await expectTrue('partly', 'drift', client, FIVE);
    await isMended();
    const mended = await ask(client, TWO);
    expect(mended.verdict, mended.cause).toBe('works');
  });

  it('drift: packets to an endpoint, and answers, are dropped', async () => {
    insert('endpoints-2', 'ip daddr 10.96.255.255 drop');
    insert('filter-forward', `ct state new ip daddr ${web2.ip()} drop`);
    await expectTrue('partly', 'drift', client, TWO);
    insert('filter-forward', `ct direction reply ip saddr ${web.ip()} numgen random mod 2 == 0 drop`);
    await expectTrue('partly', 'drift', client, ONE);
    insert('filter-forward', `ct direction reply ip saddr ${web.ip()} drop`);
    await expectTrue('fails', 'drift', client, ONE);
    await isMended();
  });
});

describe('rules of somebody else', () => {
  const filter = (hook: string, rule: string) =>
    faults.nft(`table inet theirs { chain p { type filter hook ${hook}; ${rule}; } }`, 'inet theirs');

  it.each<[string, () => void]>([
    ['one of two endpoints', () => filter('forward priority 10', `ct state new ip daddr ${web2.ip()} drop`)],
    [
      'one of two endpoints, and half of the rest',
      () => {
        const rest = `ct state new ip daddr ${web.ip()} numgen random mod 2 == 0 drop`;
        filter('forward priority 10', `ct state new ip daddr ${web2.ip()} drop; ${rest}`);
      },
    ],
    ['half of first packets', () => filter('forward priority 10', 'ct state new numgen random mod 2 == 0 drop')],
    [
      'half of first packets in front of translation',
      () => filter('prerouting priority -150', 'ct state new numgen random mod 2 == 0 drop'),
    ],
    [
      'a third of first packets, refused',
      () => filter('forward priority 10', 'ct state new numgen random mod 3 == 0 reject'),
    ],
    ['half of answers', () => filter('forward priority 10', 'ct direction reply numgen random mod 2 == 0 drop')],
    [
      'half of what is established',
      () => filter('forward priority 10', 'ct state established numgen random mod 2 == 0 drop'),
    ],
    [
      'most packets to one endpoint after the first',
      () => {
        const after = 'tcp flags & (syn | ack) == ack numgen random mod 10 != 0 drop';
        filter('forward priority 10', `ct direction original ip daddr ${web2.ip()} ${after}`);
      },
    ],
  ])('foreign-drop, partly: %s', async (_, begin) => {
    begin();
    await expectTrue('partly', 'foreign-drop', client, TWO);
    await expectTrue('partly', 'foreign-drop', outside, node.ip(), PORT_OF_TWO);
  });

  it('foreign-drop: all ways end so, each in its own way', async () => {
    const half = 'ct state new numgen random mod 2 == 0 reject';
    filter('forward priority 10', `${half}; ct state new drop`);
    await expectTrue('fails', 'foreign-drop', client, TWO);
  });

  it('foreign-drop: each endpoint by a rule of its own, one of them for answers', async () => {
    filter(
      'forward priority 10',
      `ct state new ip daddr ${web2.ip()} drop; ct direction reply ip saddr ${web.ip()} drop`,
    );
    await expectTrue('fails', 'foreign-drop', client, TWO);
  });

  it('foreign-drop, partly: a pod without a Service', async () => {
    filter('forward priority 10', 'ct state new numgen random mod 2 == 0 drop');
    await expectTrue('partly', 'foreign-drop', client, web.ip(), 8080);
  });

  it('target-port, partly: some connections without a Service are led to where nobody listens', async () => {
    const lead = (match: string) => `tcp dport 8080 ${match} dnat ip to ${web2.ip()}:8999`;
    const nat = (rule: string) =>
      faults.nft(`table inet led { chain p { type nat hook prerouting priority -110; ${rule}; } }`, 'inet led');
    nat(lead('numgen random mod 2 == 0'));
    const answer = await expectTrue('partly', 'target-port', client, web.ip(), 8080);
    expect(answer.endpoints.map(({ problem }) => problem).sort()).toEqual(['target-port', null].sort());
    faults.mend();
    // Which port a client outside has, nobody here knows.
    await node.serve({ port: 8080 });
    nat(lead('tcp sport 999'));
    const unsure = await ask(outside, node.ip(), 8080);
    expect(unsure.verdict, unsure.cause).toBe('unknown');
    expect(await really(outside, node.ip(), 8080)).toBe('works');
  });
});

it.each([
  { by: 'pod', host: client },
  { by: 'node', host: node },
  { by: 'outside', host: outside },
])('no-such-port: an address of a ServiceCIDR that no Service has, from $by', async ({ host }) => {
  if (host === outside) {
    const route = `${SERVICE_RANGE} via ${node.ip()}`;
    faults.ip(`route add ${route}`, `route del ${route}`, outside);
  }
  const { cause } = await expectTrue('fails', 'no-such-port', host, NOBODYS);
  expect(cause).toContain(`no Service has the address ${NOBODYS}`);
});

it.each([PORT_OF_FAR, PORT_OF_BOTH])(
  'this node reaches endpoints of the other by its own NodePort %s: answers come back to it',
  async (port) => {
    const answer = await ask(node, node.ip(), port);
    expect(answer.verdict, answer.cause).toBe('unknown');
    expect(await really(node, node.ip(), port)).toBe('works');
    const probed = await world.ask(`${node.ip()}:${port}`, 'node', '--probe');
    expect(probed.verdict, probed.cause).toBe('works');
    expect(await answers(node, node.ip(), port)).toBe(true);
  },
);
