import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { Counter, Gauge, type Registry } from 'prom-client';
import { formatIp, networkOf, tryParseIp } from '../../core/index.ts';

/**
 * What a client may cost the HTTP servers of this process, all of them together: the pages of the agent, which the kubelet
 * and Prometheus read, and the health checks of Services, which anybody who reaches the node may ask.
 */
const HTTP_BOUNDS = {
  /** Connections at once. A descriptor each; the agent itself needs about a hundred, and 1024 is the usual limit of both. */
  connections: 128,
  /** Of one client: an IPv4 address, or the /64 an IPv6 client can choose its addresses from. A prober needs one or two. */
  connectionsOfClient: 16,
  /**
   * Requests on a connection that wait for their answers. Neither probers nor scrapers send one before they have the answer
   * before; who does has all of them made and kept in memory, two thousand out of one packet's 64 KiB.
   */
  requestsWaiting: 4,
  /** From the connection, or the answer before, until all headers are there: they fit into one packet. */
  headersMs: 5000,
  /** Until the whole request is there. Nobody here reads a body. */
  requestMs: 10_000,
  /** Until the client has taken an answer: 20 MB of metrics over a slow line. */
  answerMs: 30_000,
  /** Without a request between two: a burst of them shares a connection. */
  keepAliveMs: 5000,
  /** How often the times are looked at. */
  checkMs: 1000,
  /** All headers of a request; those of Prometheus have 300 bytes. */
  headerBytes: 16 * 1024,
} as const;

export type HttpBounds = { readonly [Name in keyof typeof HTTP_BOUNDS]: number };

interface Connection {
  readonly socket: Socket;
  readonly client: string;
  /** How many are being made or sent. */
  answers: number;
}

/**
 * Keeps the number of connections within its bounds. A new one is never refused, because it may be the kubelet's or
 * Prometheus': another is closed for it. Of the client that holds the most, that is the oldest connection that waits for a
 * request; if none does, its oldest.
 */
export class HttpConnections {
  readonly bounds: HttpBounds;
  /** Oldest first. */
  readonly #connections = new Map<Socket, Connection>();
  readonly #byClient = new Map<string, Set<Connection>>();
  /** How many have had to go. */
  evicted = 0;

  constructor(bounds: Partial<HttpBounds> = {}) {
    this.bounds = { ...HTTP_BOUNDS, ...bounds };
  }

  get size(): number {
    return this.#connections.size;
  }

  /** Counts the connections of a server. */
  watch(server: Server): void {
    server.on('connection', (socket) => this.#admit(socket));
  }

  /**
   * Counts a request. False when it must not be answered: its connection had to go, or goes now because too many of its
   * requests wait. The parser hands over what else it has read from such a connection, so each request is to be asked for.
   */
  admitRequest({ socket }: IncomingMessage, response: ServerResponse): boolean {
    const connection = this.#connections.get(socket);
    if (!connection) return false;
    if (connection.answers >= this.bounds.requestsWaiting) {
      this.#evict(connection);
      return false;
    }
    connection.answers++;
    response.once('close', () => connection.answers--);
    return true;
  }

  #admit(socket: Socket): void {
    const client = clientOf(socket.remoteAddress);
    const { connections, connectionsOfClient } = this.bounds;
    if (this.#of(client).size >= connectionsOfClient) this.#evictFrom(this.#of(client));
    else if (this.#connections.size >= connections) this.#evictFrom(this.#largest());
    const connection = { socket, client, answers: 0 };
    this.#connections.set(socket, connection);
    this.#byClient.set(client, this.#of(client).add(connection));
    socket.once('close', () => this.#forget(connection));
  }

  #evictFrom(connections: ReadonlySet<Connection>): void {
    const [oldest] = connections;
    const victim = [...connections].find(({ answers }) => answers === 0) ?? oldest;
    if (victim) this.#evict(victim);
  }

  #evict(connection: Connection): void {
    this.evicted++;
    // `close` comes later; the descriptor is free at once.
    this.#forget(connection);
    connection.socket.destroy();
  }

  /** The connections of the client with the most; with one each, all of them. */
  #largest(): ReadonlySet<Connection> {
    let largest: ReadonlySet<Connection> = new Set();
    for (const connections of this.#byClient.values()) if (connections.size > largest.size) largest = connections;
    return largest.size > 1 ? largest : new Set(this.#connections.values());
  }

  #of(client: string): Set<Connection> {
    return this.#byClient.get(client) ?? new Set();
  }

  #forget(connection: Connection): void {
    this.#connections.delete(connection.socket);
    const others = this.#of(connection.client);
    others.delete(connection);
    if (others.size === 0) this.#byClient.delete(connection.client);
  }
}

/** Shows how many connections there are, and how many had to go. */
export function registerConnectionMetrics(registry: Registry, connections: HttpConnections): void {
  new Gauge({
    name: 'nodeplane_http_connections',
    help: 'Open connections to the health, metrics and health check ports of this agent.',
    registers: [registry],
    collect() {
      this.set(connections.size);
    },
  });
  new Counter({
    name: 'nodeplane_http_connections_evicted_total',
    help: 'Connections to these ports that were closed to make room for others, or for too many requests at once.',
    registers: [registry],
    collect() {
      this.reset();
      this.inc(connections.evicted);
    },
  });
}

/** Who is behind an address, as far as limits go. */
function clientOf(address = ''): string {
  const text = address.replace(/^::ffff:/, '');
  const ip = tryParseIp(text);
  return ip?.family === 'IPv6' ? formatIp(networkOf(ip, 64)) : text;
}
