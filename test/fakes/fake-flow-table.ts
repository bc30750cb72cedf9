import type { FlowTable } from '../../src/agent/index.ts';
import { type IpAddress, parseIp } from '../../src/core/index.ts';
import type { Flow, FlowListing } from '../../src/netlink/conntrack/index.ts';

/** A flow table in memory that notes what it is asked. */
export class FakeFlowTable implements FlowTable {
  readonly listings: FlowListing[] = [];
  readonly deletions: number[] = [];
  flows: Flow[];
  failure: Error | undefined;
  /** Those to which something came back; undefined: all. */
  answered: ReadonlySet<Flow> | undefined;

  constructor(flows: readonly Flow[] = []) {
    this.flows = [...flows];
  }

  list(listing: FlowListing): readonly Flow[] {
    this.listings.push(listing);
    if (this.failure) throw this.failure;
    const { destination, protocol, filter, unanswered = false } = listing;
    const isAnswered = (flow: Flow) => this.answered?.has(flow) ?? true;
    const isPicked = (flow: Flow) => !unanswered || !isAnswered(flow);
    return this.flows
      .filter(isPicked)
      .filter(
        ({ original: { destination: ip, destinationPort: port }, protocol: number }) =>
          number === (protocol ?? destination?.protocol) &&
          (!destination || (destination.port === port && (!destination.ip || same(destination.ip, ip)))) &&
          (!filter || filter(number, port)),
      );
  }

  delete(flows: readonly Flow[]): void {
    this.deletions.push(flows.length);
    this.flows = this.flows.filter((flow) => !flows.includes(flow));
  }

  close(): void {}
}

const same = (a: IpAddress, b: IpAddress) => Buffer.compare(a.bytes, b.bytes) === 0;

/** A flow to `to`, answered, or to be answered, by `by`: both `address:port`. */
export function flow(to: string, by: string, protocol = 17): Flow {
  const [destination, destinationPort] = to.split(':');
  const [source, sourcePort] = by.split(':');
  const client = parseIp('10.244.1.9');
  return {
    family: 'IPv4',
    protocol,
    original: {
      source: client,
      sourcePort: 4000,
      destination: parseIp(destination!),
      destinationPort: Number(destinationPort),
    },
    reply: {
      source: parseIp(source!),
      sourcePort: Number(sourcePort),
      destination: client,
      destinationPort: 4000,
    },
    id: 1,
    zone: 0,
    tuple: new Uint8Array(),
  };
}
