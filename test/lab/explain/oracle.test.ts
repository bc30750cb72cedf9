import fc from 'fast-check';
import { afterAll, expect, it } from 'vitest';
import { type IpFamily, ipFromBytes } from '../../../src/core/index.ts';
import { KernelRules, NftRules, type Walk, walkPacket } from '../../../src/explain/index.ts';
import { nftFamily, type TraceEvent } from '../../../src/netlink/nftables/index.ts';
import { removeAll } from '../namespace.ts';
import { PATIENCE } from '../patience.ts';
import { expectSameEnd, isUnknown, randomPacket } from './compare.ts';
import { NETWORKS } from './network.ts';
import { hostOf, OracleWorld } from './oracle-world.ts';
import { randomTable } from './random-rules.ts';

const CASES: readonly (readonly [IpFamily, 'tcp' | 'udp'])[] = [
  ['IPv4', 'udp'],
  ['IPv4', 'tcp'],
  ['IPv6', 'udp'],
  ['IPv6', 'tcp'],
];
/** With those of legacy iptables 10,000 packets (legacy-oracle.test.ts). */
const RULESETS = 20;
const PACKETS = 50;
/** The share of packets of which the walk may say that it cannot tell: rules with a limit are in their way. */
const MOST_UNKNOWN = 0.1;

afterAll(removeAll);

it.each(CASES)(
  'walks %s packets of %s as the kernel does: rule by rule, to the same end, or says that it cannot tell',
  async (family, protocol) => {
    const network = NETWORKS[family];
    const world = new OracleWorld(network, protocol);
    const host = hostOf(world.node, network);
    const own = nftFamily(family);
    const drawn = fc.tuple(
      randomTable('first', own, network),
      randomTable('second', 'inet', network),
      fc.array(randomPacket(network), { minLength: PACKETS, maxLength: PACKETS }),
    );
    let [sent, unknown] = [0, 0];
    for (const [first, second, packets] of fc.sample(drawn, RULESETS)) {
      world.nft.commit([...first, ...second]);
      world.arm();
      const met = await world.send(packets);
      world.disarm();
      const rules = new NftRules(new KernelRules(world.nft));
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
        const { branches, complete } = walkPacket(question, { origin, sources: [rules], host }, { everyPath: true });
        expect(complete).toBe(true);
        const really = pathOf(events);
        const walked = branches.map(({ result }) => ({ walk: result, path: stepsOf(result) }));
        const same = walked.filter(({ path, walk }) => isSame(path, really, walk));
        if (same.length === 0) {
          const told = walked.map(({ path, walk }) => [...path, walk.end.kind]);
          expect(told, `packet ${JSON.stringify(question)} from ${sentPacket.from}`).toContainEqual(really);
        }
        for (const { walk } of same.slice(0, 1)) expectSameEnd(walk, events);
        sent++;
        if (isUnknown(branches)) unknown++;
      }
      world.nft.commit([
        { operation: 'delete', object: { kind: 'table', family: own, name: 'first' } },
        { operation: 'delete', object: { kind: 'table', family: 'inet', name: 'second' } },
      ]);
    }
    world.close();
    expect(sent).toBe(RULESETS * PACKETS);
    expect(unknown / sent).toBeLessThan(MOST_UNKNOWN);
  },
  300_000 * PATIENCE,
);

/** The rules and policies of the random tables that a packet met. */
function pathOf(events: readonly TraceEvent[]): string[] {
  return events
    .filter(
      ({ table, type, handle }) => table !== 'arm' && (type === 'policy' || (type === 'rule' && handle !== undefined)),
    )
    .map(({ table, chain, handle, verdict }) => `${table} ${chain} ${handle ?? 'policy'} ${verdict}`);
}

function stepsOf({ steps }: Walk): string[] {
  return steps.map(({ chain, rule, verdict }) => {
    const handle = rule && 'handle' in rule ? rule.handle : 'policy';
    return `${chain.table} ${chain.name} ${handle} ${verdict === 'reject' ? 'drop' : verdict}`;
  });
}

/** A walk that cannot tell must be right as far as it goes. */
function isSame(walked: readonly string[], really: readonly string[], { end }: Walk): boolean {
  const compared = end.kind === 'cannot tell' ? really.slice(0, walked.length) : really;
  return walked.length === compared.length && walked.every((step, index) => step === compared[index]);
}
