import fc from 'fast-check';
import { expect } from 'vitest';
import { parseIp } from '../../../src/core/index.ts';
import type { Branch, Walk } from '../../../src/explain/index.ts';
import type { TraceEvent } from '../../../src/netlink/nftables/index.ts';
import { HEADER, type OracleNetwork } from './network.ts';
import { PORTS, type SentPacket } from './oracle-world.ts';

/** A packet of a client, or of the node itself. */
export function randomPacket({ sources, destinations, links }: OracleNetwork): fc.Arbitrary<SentPacket> {
  return fc
    .tuple(fc.boolean(), fc.constantFrom(...sources), fc.constantFrom(...destinations), fc.constantFrom(...PORTS))
    .map(([forwarded, source, destination, destinationPort]) =>
      // What the node sends to itself crosses it twice, and the trace begins anew.
      forwarded || destination === destinations.at(-1)
        ? { from: 'client', source, destination, destinationPort }
        : { from: 'node', source: parseIp(links.out.node).bytes, destination, destinationPort },
    );
}

/** Whether what nobody can tell decides how the packet ends. */
export function isUnknown(branches: readonly Branch<Walk>[]): boolean {
  const ends = new Set(branches.map(({ result }) => `${result.end.kind} ${result.packet.ends.destination.bytes}`));
  const unknown = branches.some(({ choices }) => choices.some(({ kind }) => kind === 'unknown'));
  return branches.some(({ result }) => result.end.kind === 'cannot tell') || (unknown && ends.size > 1);
}

/** The packet as it left the rules: in the late chains of `arm`, or nowhere. */
export function leftAs(events: readonly TraceEvent[]): TraceEvent | undefined {
  return events.findLast(({ table, chain }) => table === 'arm' && (chain === 'postrouting' || chain === 'input'));
}

/** Whether a walk ends as the packet did: the same address and port, the same mark, or the same nothing. */
export function hasSameEnd({ end, packet }: Walk, events: readonly TraceEvent[]): boolean {
  const left = leftAs(events);
  if ((end.kind === 'sent' || end.kind === 'delivered') !== (left !== undefined)) return false;
  if (!left?.networkHeader || !left.transportHeader) return true;
  const { source, destination, length } = HEADER[packet.family];
  const { ends, mark } = packet;
  return (
    ends.source.equals(left.networkHeader.subarray(source, source + length)) !== false &&
    ends.destination.equals(left.networkHeader.subarray(destination, destination + length)) === true &&
    ends.destinationPort.equals(left.transportHeader.subarray(2, 4)) === true &&
    mark.equals(new Uint8Array(Uint32Array.of(left.mark).buffer)) === true
  );
}

/** What cannot tell its end may have any. */
export function expectSameEnd(walk: Walk, events: readonly TraceEvent[]): void {
  if (walk.end.kind !== 'cannot tell') expect(hasSameEnd(walk, events)).toBe(true);
}
