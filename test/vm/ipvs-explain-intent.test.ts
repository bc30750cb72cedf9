import { afterAll, describe, expect, it } from 'vitest';
import { ExplainWorld } from '../lab/explain/explain-world.ts';
import { answers, Faults } from '../lab/explain/faults.ts';
import { ON_LINK, testIntent } from '../lab/explain/intent-suite.ts';
import { removeAll } from '../lab/lab.ts';

// What the objects say, in mode ipvs: there every node has the addresses of all Services.

const world = new ExplainWorld();
const { node, client, outside } = world;
const faults = new Faults(world);

afterAll(removeAll);
testIntent(world, ['--proxy-mode', 'ipvs', '--nodeport-addresses', '192.168.50.0/24,fd00:50::/64']);

describe('a client outside and an address that the node has for IPVS alone', () => {
  it('on a link of both this node answers for it, unless arp_ignore forbids', async () => {
    const vip = ON_LINK.IPv4;
    expect(await world.ask(vip, outside.ip())).toMatchObject({ verdict: 'works' });
    expect(await answers(outside, vip)).toBe(true);
    faults.sysctl('net.ipv4.conf.all.arp_ignore', '1');
    world.run('conntrack', '-F');
    faults.run('ip', `neigh flush to ${vip}`, `neigh flush to ${vip}`, outside);
    expect(await world.ask(vip, outside.ip())).toMatchObject({ verdict: 'unknown', code: 'cannot-tell' });
    expect(await answers(outside, vip)).toBe(false);
  });

  it('of IPv6 no node answers for it', async () => {
    const vip = ON_LINK.IPv6;
    expect(await world.ask(vip, outside.ip('IPv6'))).toMatchObject({ verdict: 'unknown', code: 'cannot-tell' });
    expect(await answers(outside, vip)).toBe(false);
  });

  it('elsewhere nobody here knows whether its packets come, until one has', async () => {
    const vip = '203.0.113.9';
    const [from, other] = [outside.ip(), client.ip()];
    expect(await world.ask('203.0.113.10:80', from)).toMatchObject({ verdict: 'unknown', code: 'cannot-tell' });
    expect(await answers(outside, '203.0.113.10')).toBe(false);
    expect(await world.ask('203.0.113.10:80', other)).toMatchObject({ verdict: 'works' });
    expect(await answers(client, '203.0.113.10')).toBe(true);
    expect(await world.ask(`${vip}:80`, from)).toMatchObject({ verdict: 'fails', code: 'source-ranges' });
    faults.ip(`route add 203.0.113.10 via ${node.ip()}`, `route del 203.0.113.10 via ${node.ip()}`, outside);
    expect(await answers(outside, '203.0.113.10')).toBe(true);
    expect(await world.ask('203.0.113.10:80', from)).toMatchObject({ verdict: 'works' });
  });
});
