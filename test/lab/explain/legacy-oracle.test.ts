import fc from 'fast-check';
import { afterAll, expect, it } from 'vitest';
import { type IpFamily, ipFromBytes } from '../../../src/core/index.ts';
import { IpSetMembers, KernelChains, LegacyRules, walkPacket } from '../../../src/explain/index.ts';
import { Netlink } from '../../../src/netlink/index.ts';
import { getSetName, listIpSets, listMembers } from '../../../src/netlink/ipset/index.ts';
import { NETLINK_NETFILTER } from '../../../src/netlink/uapi/netlink.ts';
import { iptablesTool, programName } from '../../../src/proxy/rules/index.ts';
import { inNetns, readLegacyTable } from '../../../src/sys/index.ts';
import { execIn, useOwnLockFile } from '../iptables/fixtures.ts';
import { removeAll, type TestNamespace } from '../namespace.ts';
import { PATIENCE } from '../patience.ts';
import { hasSameEnd, isUnknown, leftAs, randomPacket } from './compare.ts';
import { NETWORKS, type OracleNetwork, textOf } from './network.ts';
import { hostOf, OracleWorld, PORTS } from './oracle-world.ts';
import { randomTables } from './random-iptables.ts';

const CASES: readonly (readonly [IpFamily, 'tcp' | 'udp'])[] = [
  ['IPv4', 'udp'],
  ['IPv4', 'tcp'],
  ['IPv6', 'udp'],
  ['IPv6', 'tcp'],
];
/** With those of nf_tables 10,000 packets (oracle.test.ts). */
const RULESETS = 30;
const PACKETS = 50;
/** The share of packets of which the walk may say that it cannot tell. */
const MOST_UNKNOWN = 0.15;

afterAll(removeAll);

// A legacy table tells nobody which rules a packet met. Where packets are let through, their mark does: nearly all rules change a bit of
// it, so that a rule too much or too little shows.
it.each(CASES)(
  'walks %s packets of %s through legacy iptables to the end they really come to, or says that it cannot tell',
  async (family, protocol) => {
    useOwnLockFile();
    const network = NETWORKS[family];
    const world = new OracleWorld(network, protocol);
    const host = { ...hostOf(world.node, network), bridgePort: () => 'none' as const };
    const exec = execIn(world.node);
    const facts = makeSets(world.node, network, protocol);
    const drawn = fc.tuple(
      randomTables(network, protocol),
      fc.array(randomPacket(network), { minLength: PACKETS, maxLength: PACKETS }),
    );
    let [sent, unknown, left] = [0, 0, 0];
    for (const [input, packets] of fc.sample(drawn, RULESETS)) {
      const restored = await exec(programName(family, 'legacy', 'restore'), [], { input });
      expect(restored.status === 0, `${restored.stderr}\n${input}`).toBe(true);
      world.arm();
      const met = await world.send(packets);
      world.disarm();
      const saved = await iptablesTool(family, 'legacy', exec).saveAll();
      const context = { family, setName: (index: number) => facts.ipsets.nameOf(index) };
      const read = (table: string) =>
        new KernelChains(readLegacyTable(family, table), context, (chain) => saved.get(table)!.get(chain)!.rules);
      const tables = inNetns(world.node.path, () => new Map([...saved.keys()].map((table) => [table, read(table)])));
      const rules = new LegacyRules({ [family]: tables }, facts);
      for (const [index, sentPacket] of packets.entries()) {
        const { port, events } = met[index]!;
        expect(events.length, 'the packet was traced').toBeGreaterThan(0);
        const question = {
          protocol,
          source: ipFromBytes(sentPacket.source),
          destination: ipFromBytes(sentPacket.destination),
          destinationPort: sentPacket.destinationPort,
          sourcePort: port,
        };
        const origin = sentPacket.from === 'node' ? 'this host' : host.in0;
        const { branches } = walkPacket(question, { origin, sources: [rules], host }, { everyPath: true });
        const possible = branches.some(({ result }) => result.end.kind === 'cannot tell' || hasSameEnd(result, events));
        if (!possible) {
          const told = branches.map(({ result: { end, packet, steps } }) => ({
            end: end.kind,
            to: textOf(packet.ends.destination.bytes),
            mark: [...packet.mark.bytes],
            steps: steps.map(
              ({ chain, rule, verdict }) => `${chain.table} ${chain.name} ${JSON.stringify(rule)} ${verdict}`,
            ),
          }));
          const really = leftAs(events);
          const seen = `${textOf(sentPacket.source)} to ${textOf(sentPacket.destination)}:${sentPacket.destinationPort} from ${sentPacket.from}`;
          expect(told, `${seen}: mark ${really?.mark}, header ${really?.networkHeader}\n${input}`).toBe('one of these');
        }
        sent++;
        if (leftAs(events)) left++;
        if (isUnknown(branches)) unknown++;
      }
    }
    world.close();
    expect(sent).toBe(RULESETS * PACKETS);
    // Otherwise marks would show nothing.
    expect(left / sent).toBeGreaterThan(0.25);
    expect(unknown / sent).toBeLessThan(MOST_UNKNOWN);
  },
  300_000 * PATIENCE,
);

/** The sets that random rules ask, and how they are read. */
function makeSets(
  node: TestNamespace,
  { family, sources, destinations }: OracleNetwork,
  protocol: 'tcp' | 'udp',
): { readonly ipsets: IpSetMembers } {
  const inet = family === 'IPv4' ? 'inet' : 'inet6';
  node.run('ipset', 'create', 'one', 'hash:ip', 'family', inet);
  node.run('ipset', 'create', 'two', 'hash:ip,port', 'family', inet);
  node.run('ipset', 'add', 'one', textOf(sources[0]!));
  for (const to of destinations.slice(0, 2)) node.run('ipset', 'add', 'two', `${textOf(to)},${protocol}:${PORTS[1]}`);
  const netlink = inNetns(node.path, () => Netlink.open(NETLINK_NETFILTER));
  return {
    ipsets: new IpSetMembers({
      listSets: () => listIpSets(netlink),
      listMembers: (name) => listMembers(netlink, name),
      getName: (index) => getSetName(netlink, index),
    }),
  };
}
