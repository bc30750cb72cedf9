import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { formatIp, type IpFamily, ipFromBytes, parseIp } from '../../src/core/index.ts';
import { type Host, type Interface, readRules, walkPacket } from '../../src/explain/index.ts';
import { Nftables } from '../../src/netlink/nftables/index.ts';
import { RTN_LOCAL, RTN_UNICAST } from '../../src/netlink/uapi/rtnetlink.ts';
import { inNetns } from '../../src/sys/index.ts';
import { useOwnLockFile } from '../lab/iptables/fixtures.ts';
import { type Agent, removeAll, tally } from '../lab/lab.ts';
import type { TestNamespace } from '../lab/namespace.ts';
import { flagsOf, type ModeName } from './modes.ts';
import type { Check, Scenario } from './scenario.ts';
import { SCENARIOS } from './scenarios.ts';
import { createWorld, FAMILIES, type World } from './world.ts';

const MODES: readonly ModeName[] = ['iptables, legacy variant', 'iptables, nft variant', 'nftables'];
/** Missing one of three endpoints by chance happens once in a hundred million runs. */
const CONNECTIONS = 48;

afterAll(removeAll);

describe.each(MODES)('%s', (mode) => {
  const flags = flagsOf(mode);
  let world: World;
  let agent: Agent;

  beforeAll(async () => {
    useOwnLockFile();
    world = await createWorld(SCENARIOS, ['TCP']);
    agent = await world.node.startAgent({ manifests: world.manifests, flags: [...world.flags, ...flags!] });
  });
  afterAll(async () => {
    expect(await agent.stop()).toBe(0);
  });

  // With affinity one of those that are named is reached: the first connection decides.
  it.each(FAMILIES)('names exactly the endpoints that connections of %s reach, and who is refused', async (family) => {
    const { walk, close } = simulator(world, family);
    let compared = 0;
    for (const [scenario, check] of checks()) {
      const { from, to, expected } = check;
      const target = world.target(scenario, to, family, 'TCP');
      const ends = walk(world.hosts[from].ip(family), from === 'node-1', target.ip, target.port);
      const title = `${scenario.name}: ${from} to ${to}: ${JSON.stringify([...ends])}`;
      if (typeof expected === 'string') {
        expect([...ends], title).toEqual([expected === 'refused' ? 'reject' : 'drop']);
      } else {
        const outcomes = await world.hosts[from].connectMany(target, CONNECTIONS, {});
        const { answers } = tally(outcomes);
        const reached = Object.keys(answers).map((name) => world.hosts[name as Check['from']].ip(family));
        if ('by' in expected) expect([...ends].sort(), title).toEqual(reached.sort());
        else expect([...ends], title).toEqual(expect.arrayContaining(reached));
      }
      compared++;
    }
    close();
    expect(compared).toBeGreaterThan(20);
  });
});

function checks(): (readonly [Scenario, Check])[] {
  return SCENARIOS.filter(({ protocols = ['TCP'] }) => protocols.includes('TCP')).flatMap((scenario) =>
    scenario.checks
      // What is redirected to loopback ends in a process, which says for itself where it goes.
      .filter(({ to, inARow }) => to !== 'nodePortOfLoopback' && inARow === undefined)
      .map((check) => [scenario, check] as const),
  );
}

/** The rules of the node as they are now. Walks end at addresses of endpoints, with `drop`, or with `reject`. */
function simulator(world: World, family: IpFamily) {
  const { namespace } = world.node;
  const nft = inNetns(namespace.path, () => Nftables.open());
  const { sources, gap } = inNetns(namespace.path, () => readRules(nft, family));
  expect(gap).toBeUndefined();
  const host = hostOf(namespace, family);
  return {
    close: () => nft.close(),
    walk(source: string, isNode: boolean, destination: string, destinationPort: number): Set<string> {
      const question = {
        protocol: 'tcp',
        source: parseIp(source),
        destination: parseIp(destination),
        destinationPort,
      } as const;
      const { branches, complete } = walkPacket(question, {
        origin: isNode ? 'this host' : host.towards(source),
        sources,
        host,
      });
      expect(complete, `all ways to ${destination} are walked: ${JSON.stringify(branches.at(-1)?.choices)}`).toBe(true);
      return new Set(
        branches.map(({ result: { end, packet } }) =>
          end.kind === 'sent' || end.kind === 'delivered' ? textOf(packet.ends.destination.bytes) : end.kind,
        ),
      );
    },
  };
}

function textOf(bytes: Uint8Array): string {
  return formatIp(ipFromBytes(bytes));
}

/** What the node's routes and addresses are, as `ip` tells. */
function hostOf(namespace: TestNamespace, family: IpFamily): Host & { towards(address: string): Interface } {
  const v = family === 'IPv4' ? '-4' : '-6';
  const links: { ifindex: number; ifname: string; addr_info: { local?: string }[] }[] = JSON.parse(
    namespace.run('ip', '-j', v, 'address'),
  );
  const own = new Set(links.flatMap((link) => link.addr_info.map(({ local }) => local)));
  const index = new Map(links.map(({ ifname, ifindex }) => [ifname, ifindex]));
  const routes = new Map<string, Interface>();
  const towards = (address: string): Interface => {
    const known = routes.get(address);
    if (known) return known;
    const [route] = JSON.parse(namespace.run('ip', '-j', v, 'route', 'get', address)) as [{ dev: string }];
    const found = { name: route.dev, index: index.get(route.dev) ?? 0 };
    routes.set(address, found);
    return found;
  };
  return {
    towards,
    addressType: ({ bytes }) => (own.has(textOf(bytes)) || bytes[0] === 127 ? RTN_LOCAL : RTN_UNICAST),
    interfaceTo: (packet, which) => towards(textOf(packet.ends[which].bytes)),
    addressOn: () => undefined,
    redirectedTo: () => undefined,
    bridgePort: () => undefined,
  };
}
