import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ExplainWorld, on, served, TARGET } from '../lab/explain/explain-world.ts';
import { answers, Faults } from '../lab/explain/faults.ts';
import { faultObjects, VIP } from '../lab/explain/kernel-faults.ts';
import { type Host, removeAll } from '../lab/lab.ts';

// The way of packets that IPVS translates: hooks, connection tracking, routes.

const world = new ExplainWorld();
const { node, other, web, far, client, outside } = world;
const faults = new Faults(world);
const [PORT, FAR_PORT, HOSTED, DNS] = ['10.96.0.22', '10.96.0.23', '10.96.0.14', '10.96.0.18'];
const SCTP = '10.96.0.24';
const WEB = `${web.ip()}:${TARGET}`;

beforeAll(async () => {
  const nodePort = (number: number) => ({ type: 'NodePort', ports: [{ port: 80, nodePort: number }] }) as const;
  await world.prepare([
    ...faultObjects(world),
    ...served('shop/port', PORT, [on(node, web.ip())], nodePort(30080)),
    ...served('shop/sctp', SCTP, [on(node, web.ip())], { ports: [{ port: 80, protocol: 'SCTP' }] }),
    ...served('shop/far-port', FAR_PORT, [on(other, far.ip())], nodePort(30081)),
  ]);
  await node.serve({ port: 9000 });
  await web.serve({ port: TARGET, protocol: 'SCTP' });
  // What is broken in IPVS stays so.
  await world.startAgent('--proxy-mode', 'ipvs', '--ipvs-sync-period', '1h');
});
afterAll(async () => {
  await world.end();
  removeAll();
});

const ipvsadm = (doing: string, undoing: string) => faults.run('ipvsadm', doing, undoing);

describe('connection tracking does not see what IPVS sends (net.ipv4.vs.conntrack)', () => {
  it.each<[string, Host, string, number, 'TCP' | 'UDP']>([
    ['an endpoint elsewhere answers a client outside itself', outside, node.ip(), 30081, 'TCP'],
    ['a pod gets its own packet as it was', web, VIP.IPv4, 80, 'TCP'],
    ['a pod gets its own datagram as it was', web, DNS, 53, 'UDP'],
    ['an endpoint answers the address that the node has of the Service', node, VIP.IPv4, 80, 'TCP'],
    ['and so it does of IPv6', node, VIP.IPv6, 80, 'TCP'],
    ['and datagrams', node, DNS, 53, 'UDP'],
    ['an endpoint elsewhere answers itself', node, FAR_PORT, 80, 'TCP'],
  ])('way-back: %s', async (_, from, ip, port, protocol) => {
    world.run('conntrack', '-F');
    expect(await answers(from, ip, port, protocol)).toBe(true);
    world.run('conntrack', '-F');
    faults.sysctl('net.ipv4.vs.conntrack', '0');
    const [destination, family] = ip.includes(':') ? [`[${ip}]`, 'IPv6' as const] : [ip, 'IPv4' as const];
    const source = from === node ? 'node' : from.ip(family);
    const to = protocol === 'UDP' ? 'svc/shop/dns' : `${destination}:${port}`;
    const { cause, remedy } = await faults.expectCode(to, source, 'way-back');
    expect(cause).toContain('net.ipv4.vs.conntrack is 0');
    expect(remedy).toEqual(['sysctl -w net.ipv4.vs.conntrack=1']);
    expect(await answers(from, ip, port, protocol)).toBe(false);
    // Who need not be masqueraded goes on.
    await faults.expectWorks(VIP.IPv4, client.ip());
    expect(await answers(client, VIP.IPv4)).toBe(true);
  });
});

it('by which of its addresses the node is answered that has opened an association of SCTP with all is not known', async () => {
  world.run('conntrack', '-F');
  faults.sysctl('net.ipv4.vs.conntrack', '0');
  const [answer] = await world.askHere([{ destination: `${SCTP}:80`, source: 'node', protocol: 'sctp' }]);
  expect(answer, answer!.cause).toMatchObject({ verdict: 'unknown', cause: expect.stringContaining('SCTP') });
  expect(await node.connect({ ip: SCTP, port: 80, protocol: 'SCTP' })).toMatchObject({ kind: 'answered' });
});

describe('what IPVS does with packets beside its servers', () => {
  it('foreign-drop: behind it a packet has the interface that it came in by', async () => {
    const late = 'type filter hook postrouting priority 0; iifname "cni0" tcp dport 8080 drop;';
    faults.nft(`table inet theirs { chain late { ${late} } }`, 'inet theirs');
    await faults.expectCode(VIP.IPv4, client.ip(), 'foreign-drop');
    expect(await answers(client, VIP.IPv4)).toBe(false);
    await faults.expectWorks(VIP.IPv4, 'node');
    expect(await answers(node, VIP.IPv4)).toBe(true);
  });

  it.each([`from ${VIP.IPv4} pref 50 unreachable`, 'ipproto tcp sport 80 pref 50 unreachable'])(
    'way-back: it has answers routed anew as those of the Service: %s',
    async (rule) => {
      faults.ip(`rule add ${rule}`, `rule del ${rule}`);
      await faults.expectCode(VIP.IPv4, client.ip(), 'way-back');
      expect(await answers(client, VIP.IPv4)).toBe(false);
    },
  );

  it.each([
    ['answers', `FORWARD -p tcp --sport ${TARGET}`, 'way-back'],
    ['what it sends on', 'PREROUTING -p tcp --dport 80', 'no-peer-route'],
  ] as const)('%s are routed by the marks that rules give them', async (_, match, code) => {
    world.run('conntrack', '-F');
    const rule = `${match} -j MARK --set-mark 0x77`;
    faults.run('iptables-nft', `-t mangle -I ${rule}`, `-t mangle -D ${rule}`);
    faults.ip('rule add fwmark 0x77 pref 60 unreachable', 'rule del fwmark 0x77 pref 60 unreachable');
    await faults.expectCode(VIP.IPv4, client.ip(), code);
    expect(await answers(client, VIP.IPv4)).toBe(false);
    faults.sysctl('net.ipv4.vs.conntrack', '0');
    faults.sysctl('net.ipv4.vs.snat_reroute', '0');
    world.run('conntrack', '-F');
    await faults.expectWorks(VIP.IPv4, client.ip());
    expect(await answers(client, VIP.IPv4)).toBe(true);
  });

  it.each<[string, string | undefined, () => void]>([
    ['that nobody asks for', undefined, () => {}],
    [
      'that a policy rule asks for where the node is no more asked',
      undefined,
      () => faults.ip('rule add fwmark 0x55 iif eth0 prohibit pref 60', 'rule del pref 60'),
    ],
    [
      'by which rp_filter sees no way back',
      'rp-filter',
      () => {
        faults.sysctl('net.ipv4.conf.all.rp_filter', '1');
        faults.sysctl('net.ipv4.conf.all.src_valid_mark', '1');
        faults.ip('route add unreachable default table 79', 'route flush table 79');
        faults.ip('rule add fwmark 0x55 iif lo lookup 79 pref 60', 'rule del pref 60');
      },
    ],
  ])('marks %s', async (_, code, begin) => {
    world.run('conntrack', '-F');
    const rule = 'PREROUTING -i eth0 -j MARK --set-mark 0x55';
    faults.run('iptables-nft', `-t mangle -A ${rule}`, `-t mangle -D ${rule}`);
    begin();
    const answer = await world.ask('node:30080', outside.ip());
    expect(answer, answer.cause).toMatchObject(code ? { verdict: 'fails', code } : { verdict: 'works', code: null });
    expect(await answers(outside, node.ip(), 30080)).toBe(code === undefined);
  });

  it.each([
    [80, 'foreign-drop'],
    [TARGET, undefined],
  ] as const)('behind it answers have the address and port of the Service: rules for port %i', async (port, code) => {
    world.run('conntrack', '-F');
    const rule = `POSTROUTING -p tcp --sport ${port} -j DROP`;
    faults.run('iptables-nft', `-t mangle -I ${rule}`, `-t mangle -D ${rule}`);
    if (code) await faults.expectCode(VIP.IPv4, client.ip(), code);
    else await faults.expectWorks(VIP.IPv4, client.ip());
    expect(await answers(client, VIP.IPv4)).toBe(code === undefined);
  });

  it('way-back: answers that are kept out of connection tracking are lost, but datagrams to who was not masqueraded', async () => {
    world.run('conntrack', '-F');
    const keepOut = (of: string) => {
      const rule = `PREROUTING -s ${web.ip()} ${of}-j CT --notrack`;
      faults.run('iptables-nft', `-t raw -I ${rule}`, `-t raw -D ${rule}`);
    };
    keepOut('-p tcp --tcp-flags SYN NONE ');
    expect(await world.ask(VIP.IPv4, client.ip())).toMatchObject({ verdict: 'unknown', code: 'cannot-tell' });
    faults.mend();
    keepOut('');
    await faults.expectCode('node:30080', outside.ip(), 'way-back');
    expect(await answers(outside, node.ip(), 30080)).toBe(false);
    const { cause } = await faults.expectCode(VIP.IPv4, client.ip(), 'way-back');
    expect(cause).toContain('takes what the client sends then for another connection');
    expect(await answers(client, VIP.IPv4)).toBe(false);
    await faults.expectWorks('svc/shop/dns', client.ip());
    expect(await answers(client, DNS, 53, 'UDP')).toBe(true);
    world.run('conntrack', '-F');
    faults.sysctl('net.ipv4.vs.conntrack', '0');
    await faults.expectWorks(VIP.IPv4, client.ip());
    expect(await answers(client, VIP.IPv4)).toBe(true);
  });

  it('answers of this node itself need no connection tracking, as what they answer is not sent on', async () => {
    world.run('conntrack', '-F');
    const rule = 'OUTPUT -p tcp --sport 9000 -j CT --notrack';
    faults.run('iptables-nft', `-t raw -I ${rule}`, `-t raw -D ${rule}`);
    await faults.expectWorks(HOSTED, client.ip());
    expect(await answers(client, HOSTED)).toBe(true);
  });

  it.each<[string, string, boolean]>([
    [
      'what follows the first packet, in front of it',
      'INPUT -p tcp --dport 80 -m conntrack --ctstate ESTABLISHED',
      false,
    ],
    ['what follows the first packet, behind it', `OUTPUT -p tcp --dport ${TARGET} --tcp-flags SYN,ACK ACK`, false],
    ['what follows the first packet, by where it was', `OUTPUT -p tcp --dport 80 --tcp-flags SYN,ACK ACK`, true],
    ['what connection tracking has translated', `FORWARD -p tcp --sport ${TARGET} -m conntrack --ctstate DNAT`, true],
    ['what it has not', `FORWARD -p tcp --sport ${TARGET} -m conntrack ! --ctstate DNAT`, false],
  ])('rules drop %s', async (_, rule, works) => {
    world.run('conntrack', '-F');
    faults.run('iptables-nft', `-I ${rule} -j DROP`, `-D ${rule} -j DROP`);
    if (works) await faults.expectWorks(VIP.IPv4, client.ip());
    else await faults.expectCode(VIP.IPv4, client.ip(), 'foreign-drop');
    expect(await answers(client, VIP.IPv4)).toBe(works);
  });

  it.each<[string, string, () => void | Promise<void>]>([
    [
      'a policy rule for the source of the client',
      'asks for sources',
      () =>
        faults.ip(
          `rule add from ${client.ip()} pref 50 unreachable`,
          `rule del from ${client.ip()} pref 50 unreachable`,
        ),
    ],
    [
      'packets that are dropped at random',
      'drop_packet',
      () => {
        faults.sysctl('net.ipv4.vs.am_droprate', '1');
        faults.sysctl('net.ipv4.vs.drop_packet', '3');
      },
    ],
    [
      'a destination that may have one connection',
      'the 1 connections',
      async () => {
        ipvsadm(`-e -t ${VIP.IPv4}:80 -r ${WEB} -m -x 1`, `-e -t ${VIP.IPv4}:80 -r ${WEB} -m -x 0`);
        const held = await client.hold({ ip: VIP.IPv4, port: 80 });
        faults.undo(() => void held.close());
      },
    ],
  ])('of %s nothing is told', async (_, text, begin) => {
    // What was sent in vain before is a flow that nobody translates.
    world.run('conntrack', '-F');
    await begin();
    const cause = expect.stringContaining(text);
    const answer = await world.ask(VIP.IPv4, client.ip());
    expect(answer, answer.cause).toMatchObject({ verdict: 'unknown', cause });
    expect(await answers(client, VIP.IPv4)).toBe(false);
  });
});
