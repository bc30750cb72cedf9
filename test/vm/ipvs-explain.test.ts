import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ExplainWorld, on, served, TARGET } from '../lab/explain/explain-world.ts';
import { answers, Faults, keepSocket } from '../lab/explain/faults.ts';
import { faultObjects, faultsOf, VIP } from '../lab/explain/kernel-faults.ts';
import { removeAll } from '../lab/lab.ts';
import { patient } from '../lab/patience.ts';
import { manifestOf, saveManifest } from '../samples/manifests.ts';
import { tracedFrom } from './traced.ts';

// The faults of test/lab/explain in mode ipvs, and those that this mode alone knows.

const world = new ExplainWorld();
const { node, web, web2, far, client, outside } = world;
const faults = new Faults(world);
const [TWO, STICKY, PORT, RANGES, TRACED, DNS, FTP] = [
  '10.96.0.20',
  '10.96.0.21',
  '10.96.0.22',
  '10.96.0.24',
  '10.96.0.25',
  '10.96.0.18',
  '10.96.0.26',
];
const LOAD_BALANCER = '203.0.113.9';
/** Nobody's, in the range of the pods of this node. */
const GONE = `10.244.1.200:${TARGET}`;
const [WEB, WEB2, FAR] = [web, web2, far].map((pod) => `${pod.ip()}:${TARGET}`);

beforeAll(async () => {
  const nodePort = (number: number) => ({ type: 'NodePort', ports: [{ port: 80, nodePort: number }] }) as const;
  const ranges = { type: 'LoadBalancer', loadBalancerSourceRanges: ['10.244.0.0/16'] } as const;
  await world.prepare([
    ...faultObjects(world),
    ...served('shop/two', TWO, [on(node, web.ip()), on(node, web2.ip())]),
    ...served('shop/sticky', STICKY, [on(node, web.ip()), on(node, web2.ip())], { sessionAffinity: 'ClientIP' }),
    ...served('shop/ftp', FTP, [on(node, web.ip()), on(node, web2.ip())], {
      sessionAffinity: 'ClientIP',
      ports: [{ port: 21 }],
    }),
    ...served('shop/traced', TRACED, [on(node, web.ip())]),
    ...served('shop/port', PORT, [on(node, web.ip())], nodePort(30080)),
    ...served('shop/ranges', RANGES, [on(node, web.ip())], ranges).map((object) =>
      object.kind === 'Service'
        ? { ...object, status: { loadBalancer: { ingress: [{ ip: LOAD_BALANCER }] } } }
        : object,
    ),
  ]);
  // What is broken in IPVS and ipsets stays so.
  await world.startAgent('--proxy-mode', 'ipvs', '--ipvs-sync-period', '1h');
});
afterAll(async () => {
  await world.end();
  removeAll();
});

const ipvsadm = (doing: string, undoing: string) => faults.run('ipvsadm', doing, undoing);
const setWeight = (service: string, server: string, weight: number) =>
  ipvsadm(`-e ${service} -r ${server} -m -w ${weight}`, `-e ${service} -r ${server} -m -w 1`);

describe('what any mode may meet', () => {
  // A packet to an endpoint that is this node passes its firewall as it came.
  const { "the node's own firewall": _, ...common } = faultsOf(world, faults, 'OUTPUT');

  it.each(Object.entries(common))('%s', async (_, { code, vip, from = client, break: breakIt }) => {
    const family = vip.includes(':') ? 'IPv6' : 'IPv4';
    if (breakIt) expect(await answers(from, vip)).toBe(true);
    breakIt?.(family === 'IPv4' ? 'iptables-nft' : 'ip6tables-nft');
    await faults.expectCode(vip, from.ip(family), code);
    expect(await answers(from, vip)).toBe(false);
  });

  it('foreign-drop: before IPVS gets the packet', async () => {
    faults.run('iptables-nft', '-I INPUT -p tcp --dport 80 -j DROP', '-D INPUT -p tcp --dport 80 -j DROP');
    await faults.expectCode(VIP.IPv4, client.ip(), 'foreign-drop');
    expect(await answers(client, VIP.IPv4)).toBe(false);
  });

  it('forwarding: pods of one bridge need none, clients outside do', async () => {
    faults.sysctl('net.ipv4.ip_forward', '0');
    await faults.expectWorks(VIP.IPv4, client.ip());
    expect(await answers(client, VIP.IPv4)).toBe(true);
    await faults.expectCode('node:30080', outside.ip(), 'forwarding');
    expect(await answers(outside, node.ip(), 30080)).toBe(false);
  });

  it('nodeport-address: loopback', async () => {
    await faults.expectCode('127.0.0.1:30080', 'node', 'nodeport-address');
    expect(await answers(node, '127.0.0.1', 30080)).toBe(false);
  });
});

describe('drift', () => {
  const tcp = `-t ${VIP.IPv4}:80`;
  const set = (name: string, member: string) => faults.run('ipset', `del ${name} ${member}`, `add ${name} ${member}`);

  it.each<[string, string, () => void]>([
    [
      'a virtual server is gone',
      VIP.IPv4,
      () => {
        faults.undo(() => void world.run('ipvsadm', ...`-a ${tcp} -r ${WEB} -m -w 1`.split(' ')));
        ipvsadm(`-D ${tcp}`, `-A ${tcp} -s rr`);
      },
    ],
    ['its only destination is gone', VIP.IPv4, () => ipvsadm(`-d ${tcp} -r ${WEB}`, `-a ${tcp} -r ${WEB} -m -w 1`)],
    ['its only destination has no weight', VIP.IPv4, () => setWeight(tcp, WEB!, 0)],
    [
      'its address is gone',
      VIP.IPv4,
      () => faults.ip(`address del ${VIP.IPv4}/32 dev kube-ipvs0`, `address replace ${VIP.IPv4}/32 dev kube-ipvs0`),
    ],
    ['it is in no set of Services', VIP.IPv4, () => set('KUBE-CLUSTER-IP', `${VIP.IPv4},tcp:80`)],
    [
      'its clients are in no set',
      LOAD_BALANCER,
      () => set('KUBE-LOAD-BALANCER-SOURCE-CIDR', `${LOAD_BALANCER},tcp:80,10.244.0.0/16`),
    ],
  ])('%s', async (_, vip, breakIt) => {
    expect(await answers(client, vip)).toBe(true);
    breakIt();
    await faults.expectCode(`${vip}:80`, client.ip(), 'drift');
    expect(await answers(client, vip)).toBe(false);
    faults.mend();
    await faults.expectWorks(`${vip}:80`, client.ip());
    expect(await answers(client, vip)).toBe(true);
  });

  it.each<[string, () => void]>([
    ['is gone', () => ipvsadm(`-d -t ${TWO}:80 -r ${WEB2}`, `-a -t ${TWO}:80 -r ${WEB2} -m -w 1`)],
    ['has no weight', () => setWeight(`-t ${TWO}:80`, WEB2!, 0)],
  ])('one of two destinations %s: the other one takes all connections', async (_, breakIt) => {
    breakIt();
    const answer = await faults.expectCode(TWO, client.ip(), 'drift', { verdict: 'partly' });
    expect(answer.endpoints.map(({ address, problem }) => [address, problem])).toEqual([
      [WEB, null],
      [WEB2, 'drift'],
    ]);
    const outcomes = await client.connectMany({ ip: TWO, port: 80 }, 10);
    expect(new Set(outcomes.map((outcome) => outcome.kind === 'answered' && outcome.by))).toEqual(new Set(['web']));
  });
});

describe('what IPVS remembers comes before its servers', () => {
  it('affinity: the client is held at a destination that is no endpoint', async () => {
    const sticky = `-t ${STICKY}:80`;
    for (const server of [WEB!, WEB2!]) setWeight(sticky, server, 0);
    world.run('ipvsadm', ...`-a ${sticky} -r ${GONE} -m`.split(' '));
    const expectNotHeld = async () => {
      const answer = await world.ask(STICKY, client.ip());
      // IPVS holds a connection that nobody answered for a minute; new ones work.
      expect([null, 'recycled-ip'], answer.cause).toContain(answer.code);
      return answer;
    };
    await client.connect({ ip: STICKY, port: 80 }, { timeoutMs: 300 });
    faults.mend();
    const { cause } = await faults.expectCode(STICKY, client.ip(), 'affinity');
    expect(cause).toContain(GONE);
    expect(await answers(client, STICKY)).toBe(false);
    // Others are not held.
    await faults.expectCode(STICKY, 'node', 'drift', { verdict: 'partly' });

    // Of one without weight the kernel forgets its clients.
    world.run('ipvsadm', ...`-e ${sticky} -r ${GONE} -m -w 0`.split(' '));
    await expectNotHeld();
    // No packet between: it would be remembered elsewhere.
    faults.sysctl('net.ipv4.vs.expire_quiescent_template', '0');
    await faults.expectCode(STICKY, client.ip(), 'affinity');
    expect(await answers(client, STICKY)).toBe(false);
    faults.mend();
    expect(await answers(client, STICKY)).toBe(true);
    const { path } = await expectNotHeld();
    expect(path.find(({ stage }) => stage === 'rules')?.text).toContain('held at one by affinity');
    world.run('ipvsadm', ...`-d ${sticky} -r ${GONE}`.split(' '));
  });

  it('affinity by a part of the address holds others too, of port 21 whatever the port', async () => {
    for (const [ip, port, mask, others] of [
      [STICKY, 80, '255.255.255.0', true],
      [FTP, 21, '255.255.255.255', false],
    ] as const) {
      const service = `-t ${ip}:${port}`;
      const ipvs = (words: string) => void world.run('ipvsadm', ...words.split(' '));
      for (const server of [WEB!, WEB2!]) setWeight(service, server, 0);
      ipvs(`-E ${service} -s rr -p 600 -M ${mask}`);
      ipvs(`-a ${service} -r ${GONE} -m`);
      await client.connect({ ip, port }, { timeoutMs: 300 });
      faults.mend();
      faults.undo(() => ipvs(`-E ${service} -s rr -p 10800`));
      faults.undo(() => ipvs(`-d ${service} -r ${GONE}`));
      await faults.expectCode(`${ip}:${port}`, client.ip(), 'affinity');
      expect(await answers(client, ip, port)).toBe(false);
      if (others) await faults.expectCode(`${ip}:${port}`, web.ip(), 'affinity');
      else await faults.expectCode(`${ip}:${port}`, web.ip(), 'drift', { verdict: 'partly' });
      if (others) expect(await answers(web, ip, port)).toBe(false);
      faults.mend();
    }
  });

  it('stale-udp: a connection goes on to what is no endpoint any more', async () => {
    const dns = `-u ${DNS}:53`;
    const send = () =>
      client.connect({ ip: DNS, port: 53, protocol: 'UDP' }, { sourcePort: 40_053, timeoutMs: patient(300) });
    setWeight(dns, WEB!, 0);
    world.run('ipvsadm', ...`-a ${dns} -r ${FAR} -m`.split(' '));
    expect(await send()).toMatchObject({ by: 'far' });
    faults.mend();
    world.run('ipvsadm', ...`-e ${dns} -r ${FAR} -m -w 0`.split(' '));
    // What no socket of the client sends by is in nobody's way.
    const unused = await world.ask('svc/shop/dns', client.ip());
    expect(unused, unused.cause).toMatchObject({ verdict: 'works', warnings: [{ code: 'stale-udp' }] });
    expect(await answers(client, DNS, 53, 'UDP')).toBe(true);
    const close = await keepSocket(faults, client, { ip: DNS, port: 53, protocol: 'UDP' }, 40_053);
    const { remedy } = await faults.expectCode('svc/shop/dns', client.ip(), 'stale-udp', { verdict: 'partly' });
    await close();
    expect(await send()).toMatchObject({ by: 'far' });
    const [program, ...words] = remedy[0]!.replace(/ +#.*/, '').split(' ');
    world.run(program!, ...words);
    await expect.poll(send, { timeout: patient(10_000), interval: 500 }).toMatchObject({ by: 'web' });
    await faults.expectWorks('svc/shop/dns', client.ip());
  });

  it('a connection that began before there was a Service goes on through it', async () => {
    const late = '10.96.0.30';
    // None that the kernel gives to the connections of the tests before.
    const sourcePort = 20_030;
    const again = () => client.connect({ ip: late, port: 80 }, { sourcePort, timeoutMs: 1500 });
    expect((await again()).kind).not.toBe('answered');
    expect(world.run('conntrack', '-L', '-d', late)).toContain(`sport=${sourcePort}`);
    saveManifest(world.manifests, 'late.yaml', manifestOf(...served('shop/late', late, [on(node, web.ip())])));
    const isWritten = () => world.run('ipvsadm', '-Ln').includes(late);
    await expect.poll(isWritten, { timeout: patient(60_000) }).toBe(true);
    await faults.expectWorks('svc/shop/late', client.ip());
    expect(await again()).toMatchObject({ by: 'web' });
  });
});

it('a trace tells what IPVS did meanwhile, and why it tells no drop reasons', async () => {
  // A Service that nobody has connected to before: connections of others may be forgotten meanwhile.
  const report = await tracedFrom(node, { source: client.ip(), destination: `${TRACED}:80` }, () =>
    answers(client, TRACED),
  );
  expect(report).toMatchObject({ verdict: 'works', flows: [{ fate: 'answered', endpoint: WEB }] });
  const [server] = report.ipvsServers;
  expect(server).toMatchObject({ server: `${TRACED}:80/tcp`, destinations: [{ address: WEB, weight: 1 }] });
  const { active, inactive } = server!.destinations[0]!;
  expect(active[0] + inactive[0]).toBe(0);
  expect(active[1] + inactive[1]).toBeGreaterThan(0);
  expect(report.ipvs.map((one) => one.server)).toContain(WEB);
  expect(report.dropReasons).toContain('first network namespace');
});

it('works again when all is mended, for everybody', async () => {
  world.run('conntrack', '-F');
  for (const family of ['IPv4', 'IPv6'] as const) {
    await faults.expectWorks(VIP[family], client.ip(family));
    expect(await answers(client, VIP[family])).toBe(true);
  }
  await faults.expectWorks('node:30080', outside.ip());
  expect(await answers(outside, node.ip(), 30080)).toBe(true);
  await faults.expectWorks(VIP.IPv4, 'node');
  expect(await answers(node, VIP.IPv4)).toBe(true);
});
