import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { withPort } from '../../../src/core/index.ts';
import type { Answer } from '../../../src/explain/index.ts';
import { type Host, removeAll } from '../lab.ts';
import { ExplainWorld, on, served, TARGET } from './explain-world.ts';
import { answers, Faults } from './faults.ts';

// What rules see of packets between neighbours: of frames of a bridge, of questions who has an address, of a node that talks to itself.

const VIP6 = 'fd00:96::10';
const OWN_PORT = 9090;

const world = new ExplainWorld();
const faults = new Faults(world);
const { node, web, client } = world;

beforeAll(async () => {
  await world.begin(served('shop/web6', VIP6, [on(node, web.ip('IPv6'))]));
  await node.serve({ port: OWN_PORT });
}, 300_000);
afterAll(async () => {
  await world.end();
  removeAll();
});

async function ask(source: string, ip: string, port: number, protocol = 'tcp'): Promise<Answer> {
  const destination = withPort(ip, port);
  const [answer] = await world.askHere([{ destination, source, protocol }]);
  return answer!;
}

/** Rules, and whatever stands in their place on other lines; all of it is gone after the test. */
function apply(program: string, ...lines: readonly string[]): void {
  faults.undo(() => {
    world.run(program, '-P', 'INPUT', 'ACCEPT');
    for (const table of ['raw', 'nat', 'filter']) world.run(program, '-t', table, '-F');
    world.run('sh', '-c', 'conntrack -F 2>/dev/null');
  });
  for (const line of lines) world.run(program, ...line.split(' '));
}

/** What is asked for and is said, once nobody knows anybody's MAC address. */
async function expectAfterFlush(ip: string, port: number, verdict: Answer['verdict']): Promise<void> {
  const forget = () => {
    for (const host of [node, client, web] as Host[]) host.namespace.run('ip', '-6', 'neigh', 'flush', 'all');
  };
  forget();
  const answer = await ask(client.ip('IPv6'), ip, port);
  expect(answer.verdict, answer.cause).toBe(verdict);
  forget();
  expect(await answers(client, ip, port)).toBe(verdict === 'works');
}

describe('frames that a bridge shows to no rules', () => {
  it('pass them', async () => {
    faults.sysctl('net.bridge.bridge-nf-call-iptables', '0');
    apply('iptables-legacy', '-A FORWARD -p tcp -j DROP');
    const answer = await ask(client.ip(), web.ip(), TARGET);
    expect(answer.verdict, answer.cause).toBe('works');
    expect(await answers(client, web.ip(), TARGET)).toBe(true);
  });
});

describe.each(['ip6tables-legacy', 'ip6tables-nft'])('neighbours of IPv6, %s', (program) => {
  const direct = () => [web.ip('IPv6'), TARGET] as const;
  const service = [VIP6, 80] as const;

  it('this node hears no question', async () => {
    apply(program, '-A INPUT -p ipv6-icmp -j DROP');
    await expectAfterFlush(...service, 'fails');
    await expectAfterFlush(...direct(), 'works');
  });

  it('this node asks nobody', async () => {
    apply(program, '-A OUTPUT -p ipv6-icmp -m icmp6 --icmpv6-type 135 -j DROP');
    await expectAfterFlush(...service, 'fails');
  });

  it('pods of one bridge hear no answer', async () => {
    apply(program, '-A FORWARD -p ipv6-icmp -m icmp6 --icmpv6-type 136 -j DROP');
    await expectAfterFlush(...direct(), 'fails');
    // What comes back is a frame between them.
    await expectAfterFlush(...service, 'fails');
  });

  it('a firewall lets through what it must', async () => {
    const types = [135, 136].map(
      (type) => `-A INPUT -p ipv6-icmp -m icmp6 --icmpv6-type ${type} -m hl --hl-eq 255 -j ACCEPT`,
    );
    apply(program, ...types, '-P INPUT DROP');
    await expectAfterFlush(...service, 'works');
  });
});

it('what this node sends to itself is of a flow that is entered, when it comes in again', async () => {
  apply('iptables-legacy', '-A INPUT -p tcp -m conntrack --ctstate NEW --ctstatus CONFIRMED -j DROP');
  const answer = await ask('node', node.ip(), OWN_PORT);
  expect(answer.verdict, answer.cause).toBe('fails');
  expect(await answers(node, node.ip(), OWN_PORT)).toBe(false);
  expect((await ask(client.ip(), node.ip(), OWN_PORT)).verdict).toBe('works');
  expect(await answers(client, node.ip(), OWN_PORT)).toBe(true);
});

it('answers to requests that are not tracked begin a flow, which somebody translates', async () => {
  apply(
    'iptables-legacy',
    `-t raw -A PREROUTING -p udp -d ${web.ip()} -j CT --notrack`,
    `-t nat -A PREROUTING -p udp -s ${web.ip()} -j DNAT --to-destination ${node.ip()}`,
  );
  const answer = await ask(client.ip(), web.ip(), TARGET, 'udp');
  expect(answer.verdict, answer.cause).toBe('fails');
  expect(await answers(client, web.ip(), TARGET, 'UDP')).toBe(false);
});
