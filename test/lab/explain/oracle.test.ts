import fc from 'fast-check';
import { afterAll, expect, it } from 'vitest';
import { ipFromBytes } from '../../../src/core/index.ts';
import { type Branch, KernelRules, type Walk, walkPacket } from '../../../src/explain/index.ts';
import type { TraceEvent } from '../../../src/netlink/nftables/index.ts';
import { removeAll } from '../namespace.ts';
import { PATIENCE } from '../patience.ts';
import { DESTINATIONS, hostOf, OracleWorld, PORTS, type SentPacket, SOURCES } from './oracle-world.ts';
import { randomTable } from './random-rules.ts';

const RULESETS = 200;
const PACKETS = 50;
/** The share of packets of which the walk may say that it cannot tell: rules with a limit are in their way. */
const MOST_UNKNOWN = 0.1;

const NODE_SOURCE = Uint8Array.of(10, 9, 2, 1);

const packet: fc.Arbitrary<SentPacket> = fc
  .tuple(fc.boolean(), fc.constantFrom(...SOURCES), fc.constantFrom(...DESTINATIONS), fc.constantFrom(...PORTS))
  .map(([forwarded, source, destination, destinationPort]) =>
    // What the node sends to itself crosses it twice, and the trace begins anew.
    forwarded || destination === DESTINATIONS.at(-1)
      ? { from: 'client', source, destination, destinationPort }
      : { from: 'node', source: NODE_SOURCE, destination, destinationPort },
  );

const drawn = fc.tuple(
  randomTable('first', 'ip'),
  randomTable('second', 'inet'),
  fc.array(packet, { minLength: PACKETS, maxLength: PACKETS }),
);

afterAll(removeAll);

it(
  'walks packets as the kernel does: rule by rule, to the same end, or says that it cannot tell',
  async () => {
    const world = new OracleWorld();
    const host = hostOf(world.node);
    let [sent, unknown] = [0, 0];
    for (const [first, second, packets] of fc.sample(drawn, RULESETS)) {
      world.nft.commit([...first, ...second]);
      world.arm();
      const met = await world.send(packets);
      world.disarm();
      const rules = new KernelRules(world.nft);
      for (const [index, sentPacket] of packets.entries()) {
        const { port, events } = met[index]!;
        expect(events.length, 'the packet was traced').toBeGreaterThan(0);
        const question = {
          protocol: 'udp',
          source: ipFromBytes(sentPacket.source),
          destination: ipFromBytes(sentPacket.destination),
          destinationPort: sentPacket.destinationPort,
          sourcePort: port,
        } as const;
        const { branches, complete } = walkPacket(
          question,
          sentPacket.from === 'node' ? 'this host' : host.in0,
          rules,
          host,
        );
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
        { operation: 'delete', object: { kind: 'table', family: 'ip', name: 'first' } },
        { operation: 'delete', object: { kind: 'table', family: 'inet', name: 'second' } },
      ]);
    }
    world.close();
    expect(sent).toBe(RULESETS * PACKETS);
    expect(unknown / sent).toBeLessThan(MOST_UNKNOWN);
  },
  900_000 * PATIENCE,
);

/** Whether what nobody can tell decides how the packet ends. */
function isUnknown(branches: readonly Branch<Walk>[]): boolean {
  const ends = new Set(branches.map(({ result }) => `${result.end.kind} ${result.packet.ends.destination.bytes}`));
  const unknown = branches.some(({ choices }) => choices.some(({ kind }) => kind === 'unknown'));
  return branches.some(({ result }) => result.end.kind === 'cannot tell') || (unknown && ends.size > 1);
}

/** The rules and policies of the random tables that a packet met. */
function pathOf(events: readonly TraceEvent[]): string[] {
  return events
    .filter(
      ({ table, type, handle }) => table !== 'arm' && (type === 'policy' || (type === 'rule' && handle !== undefined)),
    )
    .map(({ table, chain, handle, verdict }) => `${table} ${chain} ${handle ?? 'policy'} ${verdict}`);
}

function stepsOf({ steps }: Walk): string[] {
  return steps.map(
    ({ chain, rule, verdict }) =>
      `${chain.table} ${chain.name} ${rule?.handle ?? 'policy'} ${verdict === 'reject' ? 'drop' : verdict}`,
  );
}

/** A walk that cannot tell must be right as far as it goes. */
function isSame(walked: readonly string[], really: readonly string[], { end }: Walk): boolean {
  const compared = end.kind === 'cannot tell' ? really.slice(0, walked.length) : really;
  return walked.length === compared.length && walked.every((step, index) => step === compared[index]);
}

/** The late chains of `arm` tell the packet as it leaves: there, or nowhere. */
function expectSameEnd(walk: Walk, events: readonly TraceEvent[]): void {
  const left = events.findLast(({ table, chain }) => table === 'arm' && (chain === 'postrouting' || chain === 'input'));
  const { end } = walk;
  if (end.kind === 'cannot tell') return;
  expect(end.kind === 'sent' || end.kind === 'delivered').toBe(left !== undefined);
  if (!left?.networkHeader || !left.transportHeader) return;
  const { ends, mark } = walk.packet;
  expect(ends.source.equals(left.networkHeader.subarray(12, 16))).not.toBe(false);
  expect(ends.destination.equals(left.networkHeader.subarray(16, 20))).toBe(true);
  expect(ends.destinationPort.equals(left.transportHeader.subarray(2, 4))).toBe(true);
  expect(mark.equals(new Uint8Array(Uint32Array.of(left.mark).buffer))).toBe(true);
}
