import { createSocket, type Socket } from 'node:dgram';
import { setTimeout } from 'node:timers/promises';
import { formatIp, ipFromBytes, parseIp } from '../../../src/core/index.ts';
import type { Host, Interface } from '../../../src/explain/index.ts';
import {
  cmp,
  counter,
  hostOrder32,
  immediate,
  meta,
  Nftables,
  type NftChange,
  type TraceEvent,
  watchTraces,
} from '../../../src/netlink/nftables/index.ts';
import { inNetns } from '../../../src/sys/index.ts';
import { createNamespace, type TestNamespace } from '../namespace.ts';
import { ip } from '../wire.ts';

const bytes = (text: string) => parseIp(text).bytes;

/** Addresses packets come from and go to; the last destination is one of the node's own. */
export const SOURCES = ['10.7.0.5', '10.7.1.6', '10.7.128.7'].map(bytes);
export const DESTINATIONS = ['10.8.0.10', '10.8.0.11', '10.8.77.12', '10.9.1.1'].map(bytes);
export const PORTS = [53, 80, 443, 8080, 30000];

/** Where a packet is sent from: through the node, or by it. */
export interface SentPacket {
  readonly from: 'client' | 'node';
  readonly source: Uint8Array;
  readonly destination: Uint8Array;
  readonly destinationPort: number;
}

const QUIET_MS = 30;
const FIRST_SOURCE_PORT = 20_000;
/** Made last, so that at the same priority it runs first; its rules are left out of what is compared. */
const ARM = { family: 'inet', table: 'arm' } as const;
const IPPROTO_UDP = 17;

/**
 * A node between a client and a server, with tracing on: what packets met there can be asked afterwards. The server takes
 * every packet and says nothing.
 */
export class OracleWorld {
  readonly node: TestNamespace;
  readonly nft: Nftables;
  readonly #client: TestNamespace;
  readonly #watch: ReturnType<typeof watchTraces>;
  #events: (TraceEvent | 'lost')[] = [];
  #nextPort = FIRST_SOURCE_PORT;

  constructor() {
    const [client, node, server] = ['client', 'node', 'server'].map((label) => createNamespace(`oracle-${label}`));
    [this.#client, this.node] = [client!, node!];
    ip(client!, [
      `link add eth0 type veth peer name in0 netns ${node!.name}`,
      'link set lo up',
      'link set eth0 up',
      'address add 10.9.1.2/24 dev eth0',
      'route add default via 10.9.1.1',
      'route add local 10.7.0.0/16 dev lo',
    ]);
    ip(server!, [
      `link add eth0 type veth peer name out0 netns ${node!.name}`,
      'link set lo up',
      'link set eth0 up',
      'address add 10.9.2.2/24 dev eth0',
    ]);
    ip(node!, [
      'link set lo up',
      'link set in0 up',
      'link set out0 up',
      'address add 10.9.1.1/24 dev in0',
      'address add 10.9.2.1/24 dev out0',
      'route add 10.7.0.0/16 via 10.9.1.2',
      'route add 10.8.0.0/16 via 10.9.2.2',
    ]);
    node!.run(
      'sysctl',
      '-qw',
      'net.ipv4.ip_forward=1',
      'net.ipv4.conf.all.rp_filter=0',
      'net.ipv4.conf.in0.rp_filter=0',
    );
    this.nft = inNetns(node!.path, () => Nftables.open());
    this.#watch = inNetns(node!.path, () =>
      watchTraces((event) => this.#events.push(event), { bufferBytes: 16 * 1024 * 1024 }),
    );
  }

  /** Sets the trace flag first of all, and tells the headers last of all. */
  arm(): void {
    const chain = (hook: 'prerouting' | 'output' | 'postrouting' | 'input', priority: number): NftChange[] => [
      {
        operation: 'add',
        object: { kind: 'chain', ...ARM, name: hook, base: { type: 'filter', hook, priority } },
      },
      {
        operation: 'add',
        object: {
          kind: 'rule',
          ...ARM,
          chain: hook,
          expressions:
            priority < 0
              ? [
                  meta('l4proto'),
                  cmp.equal(Uint8Array.of(IPPROTO_UDP)),
                  immediate(hostOrder32(1)),
                  { kind: 'meta-set', key: 'nftrace', from: 0 },
                ]
              : [counter],
        },
      },
    ];
    this.nft.commit([
      { operation: 'add', object: { kind: 'table', family: ARM.family, name: ARM.table } },
      ...chain('prerouting', -450),
      ...chain('output', -450),
      ...chain('postrouting', 400),
      ...chain('input', 400),
    ]);
  }

  disarm(): void {
    this.nft.commit([{ operation: 'delete', object: { kind: 'table', family: ARM.family, name: ARM.table } }]);
  }

  /** Sends each packet from a port of its own, and returns those ports and what each packet met, in order. */
  async send(packets: readonly SentPacket[]): Promise<readonly { port: number; events: readonly TraceEvent[] }[]> {
    this.#events = [];
    const sockets: Socket[] = [];
    const ports: number[] = [];
    for (const { from, source, destination, destinationPort } of packets) {
      const port = this.#nextPort++;
      if (this.#nextPort > 60_000) this.#nextPort = FIRST_SOURCE_PORT;
      const namespace = from === 'client' ? this.#client : this.node;
      // Bound when `bind` returns, in the namespace of the thread: nothing is looked up.
      const socket = inNetns(namespace.path, () =>
        createSocket({ type: 'udp4', lookup: (host, _options, found) => found(null, host, 4) }).bind(
          port,
          textOf(source),
        ),
      );
      // A packet that is refused makes an error here, of no interest.
      socket.on('error', () => {});
      socket.send('x', destinationPort, textOf(destination), () => {});
      sockets.push(socket);
      ports.push(port);
    }
    await this.#quiet();
    for (const socket of sockets) socket.close();
    const byPort = this.#byPort();
    return ports.map((port) => ({ port, events: byPort.get(port) ?? [] }));
  }

  close(): void {
    this.#watch.close();
    this.nft.close();
  }

  /** Packets are on their way in the kernel; what they met comes within a few milliseconds. */
  async #quiet(): Promise<void> {
    let before: number;
    do {
      before = this.#events.length;
      await setTimeout(QUIET_MS);
      this.#watch.catchUp();
    } while (this.#events.length > before);
  }

  /** The first events of a packet hold its headers as it was sent; only its first crossing of the node counts. */
  #byPort(): Map<number, TraceEvent[]> {
    if (this.#events.includes('lost')) throw new Error('Traces were lost: send fewer packets at once');
    const byId = new Map<number, TraceEvent[]>();
    for (const event of this.#events as TraceEvent[]) {
      const events = byId.get(event.id);
      if (events) events.push(event);
      else byId.set(event.id, [event]);
    }
    const byPort = new Map<number, TraceEvent[]>();
    for (const events of byId.values()) {
      const header = events[0]!.transportHeader;
      const port = header && new DataView(header.buffer, header.byteOffset).getUint16(0);
      if (port !== undefined && !byPort.has(port)) byPort.set(port, events);
    }
    return byPort;
  }
}

function textOf(address: Uint8Array): string {
  return formatIp(ipFromBytes(address));
}

const LO: Interface = { index: 1, name: 'lo' };
const OWN = ['10.9.1.1', '10.9.2.1'];
/** <linux/rtnetlink.h> */
const [RTN_UNICAST, RTN_LOCAL] = [1, 2];

/** What the node of the world would say, written down. */
export function hostOf(node: TestNamespace): Host & { readonly in0: Interface } {
  const links = JSON.parse(node.run('ip', '-j', 'link')) as { ifindex: number; ifname: string }[];
  const named = (name: string): Interface => ({ name, index: links.find(({ ifname }) => ifname === name)!.ifindex });
  const [in0, out0] = [named('in0'), named('out0')];
  return {
    in0,
    addressType: ({ bytes }) => (OWN.includes(textOf(bytes)) ? RTN_LOCAL : RTN_UNICAST),
    interfaceTo(packet, which) {
      const address = textOf(packet.ends[which].bytes);
      if (OWN.includes(address)) return LO;
      if (address.startsWith('10.7.') || address.startsWith('10.9.1.')) return in0;
      return address.startsWith('10.8.') || address.startsWith('10.9.2.') ? out0 : 'none';
    },
    addressOn: ({ name }) => (name === 'in0' ? bytes('10.9.1.1') : name === 'out0' ? bytes('10.9.2.1') : undefined),
  };
}
