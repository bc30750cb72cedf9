import { createSocket } from 'node:dgram';
import { Socket as TcpSocket } from 'node:net';
import { setTimeout } from 'node:timers/promises';
import { parseIp } from '../../../src/core/index.ts';
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
import { inNetns, libc } from '../../../src/sys/index.ts';
import { createNamespace, type TestNamespace } from '../namespace.ts';
import { ip } from '../wire.ts';
import { type OracleNetwork, textOf } from './network.ts';

export const PORTS = [53, 80, 443, 8080, 30000];

/** Where a packet is sent from: through the node, or by it. */
export interface SentPacket {
  readonly from: 'client' | 'node';
  readonly source: Uint8Array;
  readonly destination: Uint8Array;
  readonly destinationPort: number;
}

/** Neighbours are written down: random rules would stop those of IPv6 from finding each other. */
const MAC = {
  client: '02:00:00:00:00:01',
  in0: '02:00:00:00:00:02',
  out0: '02:00:00:00:00:03',
  server: '02:00:00:00:00:04',
};
const QUIET_MS = 30;
/** Beyond `PORTS`: what the node answers from those is not taken for a packet. */
const FIRST_SOURCE_PORT = 31_000;
/** Made last, so that at the same priority it runs first; its rules are left out of what is compared. */
const ARM = { family: 'inet', table: 'arm' } as const;
/** <linux/in.h>, <bits/socket.h> */
const IPPROTO = { tcp: 6, udp: 17 };
const [AF_INET, AF_INET6, SOCK_STREAM, SOCK_CLOEXEC] = [2, 10, 1, 0x80000];

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

  readonly #network: OracleNetwork;
  readonly #protocol: 'tcp' | 'udp';

  constructor(network: OracleNetwork, protocol: 'tcp' | 'udp') {
    [this.#network, this.#protocol] = [network, protocol];
    const { links, linkBits, ranges } = network;
    const [client, node, server] = ['client', 'node', 'server'].map((label) => createNamespace(`oracle-${label}`));
    [this.#client, this.node] = [client!, node!];
    for (const namespace of [client!, node!, server!]) {
      namespace.run(
        'sysctl',
        '-qw',
        'net.ipv4.conf.all.rp_filter=0',
        'net.ipv4.conf.default.rp_filter=0',
        'net.ipv6.conf.default.accept_dad=0',
        'net.ipv6.ip_nonlocal_bind=1',
      );
    }
    ip(client!, [
      `link add eth0 address ${MAC.client} type veth peer name in0 address ${MAC.in0} netns ${node!.name}`,
      'link set lo up',
      'link set eth0 up',
      `address add ${links.in.other}/${linkBits} dev eth0`,
    ]);
    ip(server!, [
      `link add eth0 address ${MAC.server} type veth peer name out0 address ${MAC.out0} netns ${node!.name}`,
      'link set lo up',
      'link set eth0 up',
      `address add ${links.out.other}/${linkBits} dev eth0`,
    ]);
    ip(node!, [
      'link set lo up',
      'link set in0 up',
      'link set out0 up',
      `address add ${links.in.node}/${linkBits} dev in0`,
      `address add ${links.out.node}/${linkBits} dev out0`,
      `neigh add ${links.in.other} lladdr ${MAC.client} dev in0`,
      `neigh add ${links.out.other} lladdr ${MAC.server} dev out0`,
      `route add ${ranges.sources} via ${links.in.other}`,
      `route add ${ranges.destinations} via ${links.out.other}`,
    ]);
    ip(client!, [
      `neigh add ${links.in.node} lladdr ${MAC.in0} dev eth0`,
      `route add default via ${links.in.node}`,
      `route add local ${ranges.sources} dev lo`,
    ]);
    node!.run('sysctl', '-qw', 'net.ipv4.ip_forward=1', 'net.ipv6.conf.all.forwarding=1');
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
                  cmp.equal(Uint8Array.of(IPPROTO[this.#protocol])),
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
    const closings: (() => void)[] = [];
    const ports: number[] = [];
    for (const packet of packets) {
      const port = this.#nextPort++;
      if (this.#nextPort > 60_000) this.#nextPort = FIRST_SOURCE_PORT;
      closings.push(this.#protocol === 'udp' ? this.#sendDatagram(packet, port) : this.#sendSyn(packet, port));
      ports.push(port);
    }
    await this.#quiet();
    for (const close of closings) close();
    const byPort = this.#byPort();
    return ports.map((port) => ({ port, events: byPort.get(port) ?? [] }));
  }

  #sendDatagram({ from, source, destination, destinationPort }: SentPacket, port: number): () => void {
    const family = this.#network.family === 'IPv4' ? 4 : 6;
    // Bound when `bind` returns, in the namespace of the thread: nothing is looked up.
    const socket = inNetns(this.#namespace(from).path, () =>
      createSocket({ type: `udp${family}`, lookup: (host, _options, found) => found(null, host, family) }).bind(
        port,
        textOf(source),
      ),
    );
    // A packet that is refused makes an error here, of no interest.
    socket.on('error', () => {});
    socket.send('x', destinationPort, textOf(destination), () => {});
    return () => socket.close();
  }

  /** A descriptor stays in the namespace in which it was made; libuv connects it later. */
  #sendSyn({ from, source, destination, destinationPort }: SentPacket, port: number): () => void {
    const domain = this.#network.family === 'IPv4' ? AF_INET : AF_INET6;
    const fd = inNetns(this.#namespace(from).path, () =>
      libc().socket(domain, SOCK_STREAM | SOCK_CLOEXEC, IPPROTO.tcp),
    );
    libc().bind(fd, socketAddress(domain, source, port));
    const socket = new TcpSocket({ fd });
    socket.on('error', () => {});
    socket.connect({ host: textOf(destination), port: destinationPort });
    return () => socket.destroy();
  }

  #namespace(from: SentPacket['from']): TestNamespace {
    return from === 'client' ? this.#client : this.node;
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

/** `struct sockaddr_in` or `struct sockaddr_in6`. */
function socketAddress(domain: number, address: Uint8Array, port: number): Buffer {
  const buffer = Buffer.alloc(domain === AF_INET ? 16 : 28);
  buffer.writeUInt16LE(domain, 0);
  buffer.writeUInt16BE(port, 2);
  buffer.set(address, domain === AF_INET ? 4 : 8);
  return buffer;
}

const LO: Interface = { index: 1, name: 'lo' };
/** <linux/rtnetlink.h> */
const [RTN_UNICAST, RTN_LOCAL] = [1, 2];

/** What the node of the world would say, written down. */
export function hostOf(node: TestNamespace, { links, behind }: OracleNetwork): Host & { readonly in0: Interface } {
  const listed = JSON.parse(node.run('ip', '-j', 'link')) as { ifindex: number; ifname: string }[];
  const named = (name: string): Interface => ({ name, index: listed.find(({ ifname }) => ifname === name)!.ifindex });
  const [in0, out0] = [named('in0'), named('out0')];
  const own = [links.in.node, links.out.node];
  const addressOn = ({ name }: Interface) =>
    name === 'in0' ? parseIp(links.in.node).bytes : name === 'out0' ? parseIp(links.out.node).bytes : undefined;
  return {
    in0,
    addressType: ({ bytes }) => (own.includes(textOf(bytes)) ? RTN_LOCAL : RTN_UNICAST),
    interfaceTo(packet, which) {
      const address = textOf(packet.ends[which].bytes);
      if (own.includes(address)) return LO;
      if (behind.in.some((start) => address.startsWith(start))) return in0;
      return behind.out.some((start) => address.startsWith(start)) ? out0 : 'none';
    },
    addressOn,
    redirectedTo: addressOn,
  };
}
