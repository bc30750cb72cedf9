import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { makeService } from '../../fakes/service-objects.ts';
import { type ExplainWorld, on, served, TARGET } from './explain-world.ts';

/** Of the wire, and nobody's. */
export const ON_LINK = { IPv4: '192.168.50.200', IPv6: 'fd00:50::200' } as const;

/**
 * What the objects say: each cause in a cluster where it is real, and where a packet says the same.
 *
 * @param flags of the agent; NodePorts do not answer at 10.244.1.1 with them
 */
export function testIntent(world: ExplainWorld, flags: readonly string[]): void {
  const { node, other, web, client, outside } = world;
  const here = (ip: string, more = {}) => on(node, ip, more);

  beforeAll(async () => {
    const ready = { conditions: { ready: false } };
    await world.begin(
      [
        ...served('shop/web', '10.96.0.10', [here(web.ip()), here(world.web2.ip())]),
        ...served('shop/web6', 'fd00:96::10', [here(web.ip('IPv6'))]),
        makeService('shop/none', { clusterIP: '10.96.0.11' }),
        ...served('shop/unready', '10.96.0.12', [here(web.ip(), ready)]),
        ...served('shop/wrong-port', '10.96.0.13', [here(web.ip())], {}, 9999),
        ...served('shop/named', '10.96.0.14', [here(web.ip())], { ports: [{ name: 'http', port: 80 }] }),
        ...served('shop/loopback', '10.96.0.15', [here(web.ip())], {}, 8081),
        ...served('shop/far', '10.96.0.16', [on(other, world.far.ip())]),
        ...served('shop/local', '10.96.0.17', [on(other, world.far.ip())], { internalTrafficPolicy: 'Local' }),
        ...served('shop/ranges', '10.96.0.18', [here(web.ip())], {
          type: 'LoadBalancer',
          loadBalancerSourceRanges: ['192.0.2.0/24'],
        }).map((object) =>
          object.kind === 'Service'
            ? { ...object, status: { loadBalancer: { ingress: [{ ip: '203.0.113.9' }] } } }
            : object,
        ),
        ...served('shop/announced', '10.96.0.25', [here(web.ip())], { externalIPs: [ON_LINK.IPv4, '203.0.113.10'] }),
        ...served('shop/announced6', 'fd00:96::25', [here(web.ip('IPv6'))], { externalIPs: [ON_LINK.IPv6] }),
        ...served('shop/port', '10.96.0.19', [here(web.ip())], {
          type: 'NodePort',
          ports: [{ port: 80, nodePort: 30080 }],
        }),
        ...served('shop/clash', '10.96.0.24', [here(web.ip())], {
          type: 'NodePort',
          ports: [{ port: 80, nodePort: 30081 }],
        }),
        ...served('shop/half', '10.96.0.20', [here(web.ip()), here(client.ip())]),
        ...served('shop/narrow', '10.96.0.21', [here(web.ip())], {}, 8082),
        makeService('shop/headless', { clusterIP: 'None', ports: [{ port: TARGET }] }),
        makeService('shop/alias', { type: 'ExternalName' }),
        ...served('shop/hinted', '10.96.0.22', [here(web.ip(), { hints: { forZones: [{ name: 'a' }] } })]),
        ...served('shop/leaving', '10.96.0.23', [
          here(web.ip(), { conditions: { ready: false, serving: true, terminating: true } }),
        ]),
      ],
      ...flags,
    );
    // Late packets of one test, as a slow machine has them, are no warning (invalid-rst) to the next one. Rules that track connections
    // have loaded what has this setting.
    node.namespace.run('sysctl', '-qw', 'net.netfilter.nf_conntrack_tcp_be_liberal=1');
    await node.serve({ port: 30081 });
    await web.serve({ port: 8081, ip: '127.0.0.1' });
    await web.serve({ port: 8082, ip: web.ip('IPv6') });
  }, 300_000);
  afterAll(() => world.end());

  /** Whether a connection of the client gets an answer. */
  const answers = async (ip: string, port = 80) => {
    const { kind } = await client.connect({ ip, port }, { timeoutMs: 1500 });
    return kind === 'answered';
  };

  describe.each([
    ['svc/shop/wbe', 'dns-name', undefined],
    ['svc/shop/web:81', 'no-such-port', '10.96.0.10:81'],
    ['node:30999', 'no-such-port', `${node.ip()}:30999`],
    ['svc/shop/none', 'no-endpoints', '10.96.0.11:80'],
    ['svc/shop/unready', 'not-ready', '10.96.0.12:80'],
    ['svc/shop/wrong-port', 'target-port', '10.96.0.13:80'],
    ['svc/shop/named', 'manual-endpoints', '10.96.0.14:80'],
    ['svc/shop/loopback', 'loopback-bound', '10.96.0.15:80'],
    ['svc/shop/local', 'local-none', '10.96.0.17:80'],
    ['203.0.113.9:80', 'source-ranges', '203.0.113.9:80'],
    ['svc/shop/narrow', 'family', '10.96.0.21:80'],
    // An address of the node; in mode nftables its primary ones alone have NodePorts.
    ['10.244.1.1:30080', 'nodeport-address', '10.244.1.1:30080'],
  ])('%s', (destination, code, packet) => {
    it(`fails: ${code}, and a packet fails too`, async () => {
      const answer = await world.ask(destination, client.ip());
      expect(answer, answer.cause).toMatchObject({ verdict: 'fails', code });
      expect(answer.remedy.length).toBeGreaterThan(0);
      const [ip, port] = packet?.split(':') ?? [];
      if (ip) expect(await answers(ip, Number(port))).toBe(false);
    });
  });

  it.each(['svc/shop/headless', 'svc/shop/alias'])(
    'cannot tell of %s, whose name may lead to who answers',
    async (destination) => {
      const answer = await world.ask(destination, client.ip());
      expect(answer, answer.cause).toMatchObject({ verdict: 'unknown', code: 'not-for-us' });
      expect(answer.remedy).toEqual([`kubectl -n shop get service ${destination.slice('svc/shop/'.length)} -o yaml`]);
      // To where the name of the headless one leads.
      expect(await answers(web.ip(), TARGET)).toBe(true);
    },
  );

  describe('what works', () => {
    it.each([
      ['svc/shop/web', '10.96.0.10', 80],
      ['svc/shop/web6', 'fd00:96::10', 80],
      ['10.96.0.10:80', '10.96.0.10', 80],
      ['node:30080', '192.168.50.1', 30080],
      ['svc/shop/hinted', '10.96.0.22', 80],
      ['svc/shop/leaving', '10.96.0.23', 80],
    ])('%s works, and packets say so', async (destination, ip, port) => {
      const from = ip.includes(':') ? client.ip('IPv6') : client.ip();
      const answer = await world.ask(destination, from);
      expect(answer, answer.cause).toMatchObject({ verdict: 'works', code: null });
      expect(answer.path.map(({ result }) => result)).not.toContain('fail');
      expect(await answers(ip, port)).toBe(true);
    });

    it('works for a pod that is asked about by its address of the other family', async () => {
      for (const [destination, ip] of [
        ['svc/shop/web6', 'fd00:96::10'],
        ['[fd00:96::10]:80', 'fd00:96::10'],
        ['svc/shop/web', '10.96.0.10'],
      ] as const) {
        const other = client.ip(ip.includes(':') ? 'IPv4' : 'IPv6');
        const answer = await world.ask(destination, other);
        expect(answer, answer.cause).toMatchObject({ verdict: 'works', code: null });
        expect(answer.question.from).toContain(other);
        expect(await answers(ip)).toBe(true);
      }
      expect(await world.ask('svc/shop/web6', outside.ip())).toMatchObject({ verdict: 'fails', code: 'family' });
    });

    it('works for this node and for somebody outside', async () => {
      expect(await world.ask('svc/shop/web', 'node')).toMatchObject({ verdict: 'works' });
      expect(await node.connect({ ip: '10.96.0.10', port: 80 })).toMatchObject({ kind: 'answered' });
      expect(await world.ask('node:30080', outside.ip())).toMatchObject({ verdict: 'works' });
      expect(await outside.connect({ ip: node.ip(), port: 30080 })).toMatchObject({ kind: 'answered' });
    });

    it('works in part where one of two endpoints does not', async () => {
      const answer = await world.ask('svc/shop/half', world.web2.ip());
      expect(answer).toMatchObject({ verdict: 'partly', code: 'target-port' });
      expect(answer.cause).toContain('1 of 2 endpoints fail');
      expect(answer.endpoints.map(({ problem }) => problem).sort()).toEqual([null, 'target-port'].sort());
      const outcomes = await world.web2.connectMany({ ip: '10.96.0.20', port: 80 }, 20, { timeoutMs: 1500 });
      expect(new Set(outcomes.map(({ kind }) => kind))).toEqual(new Set(['answered', 'refused']));
    });

    it('cannot be told for processes of another node', async () => {
      const answer = await world.ask('svc/shop/far', client.ip());
      expect(answer).toMatchObject({ verdict: 'unknown', code: 'cannot-tell' });
      expect(answer.cause).toContain('is on node-2: leaves by eth0');
    });

    it('warns of a process of the node at the number of a NodePort, which hears nothing from outside', async () => {
      const answer = await world.ask('node:30081', outside.ip());
      expect(answer).toMatchObject({ verdict: 'works', warnings: [{ code: 'nodeport-clash' }] });
      expect(await outside.connect({ ip: node.ip(), port: 30081 })).toMatchObject({ kind: 'answered', by: 'web' });
    });

    it('warns of hints that are not followed, and of endpoints that leave', async () => {
      expect((await world.ask('svc/shop/hinted', client.ip())).warnings).toMatchObject([{ code: 'hints' }]);
      expect((await world.ask('svc/shop/leaving', client.ip())).warnings).toMatchObject([{ code: 'terminating' }]);
    });
  });
}
