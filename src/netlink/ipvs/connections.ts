import { closeSync, openSync, readSync } from 'node:fs';
import { type IpAddress, ipFromBytes, tryParseIp } from '../../core/index.ts';

/** What IPVS keeps of a connection, or of a client of a virtual server with persistence. Ports in host byte order. */
export interface IpvsConnection {
  /** IPPROTO_*; 0 for a client that a virtual server of a mark remembers. */
  readonly protocol: number;
  readonly client: IpAddress;
  /** 0: no connection, but the destination that this client gets (a persistence template). */
  readonly clientPort: number;
  /** What the client asked for; of a template of a mark, the mark. */
  readonly virtual: IpAddress;
  readonly virtualPort: number;
  readonly server: IpAddress;
  readonly serverPort: number;
  /** `SYN_RECV`, `ESTABLISHED`, `UDP`, …; of a template `NONE` or `ASSURED`. */
  readonly state: string;
  /** How long it is kept from now on, if nothing comes. */
  readonly expiresSeconds: number;
}

const FILE = '/proc/thread-self/net/ip_vs_conn';
/** As ip_vs_proto_name (net/netfilter/ipvs/ip_vs_core.c) writes them. */
const PROTOCOLS: Readonly<Record<string, number>> = { IP: 0, TCP: 6, UDP: 17, SCTP: 132 };
const CHUNK = 1 << 16;

/**
 * The connections of IPVS in the namespace of the calling thread. No message of netlink asks for them: all are read, a piece at a time.
 *
 * @param isWanted others are not kept
 * @returns none without IPVS
 */
export function listIpvsConnections(isWanted: (connection: IpvsConnection) => boolean): IpvsConnection[] {
  let file: number;
  try {
    file = openSync(FILE, 'r');
  } catch {
    return [];
  }
  try {
    return parseIpvsConnections(pieces(file), isWanted);
  } finally {
    closeSync(file);
  }
}

/**
 * Of the lines of /proc/net/ip_vs_conn (ip_vs_conn_seq_show, net/netfilter/ipvs/ip_vs_conn.c): numbers in base 16 but
 * for the last. Pure.
 */
export function parseIpvsConnections(
  text: Iterable<string>,
  isWanted: (connection: IpvsConnection) => boolean,
): IpvsConnection[] {
  const found: IpvsConnection[] = [];
  let rest = '';
  for (const piece of text) {
    const lines = `${rest}${piece}`.split('\n');
    rest = lines.pop()!;
    for (const line of lines) {
      const connection = parseLine(line);
      if (connection && isWanted(connection)) found.push(connection);
    }
  }
  return found;
}

function parseLine(line: string): IpvsConnection | undefined {
  const [name = '', ...fields] = line.trim().split(/\s+/);
  const protocol = PROTOCOLS[name];
  const [client, virtual, server] = [0, 2, 4].map((at) => address(fields[at]));
  if (protocol === undefined || !client || !virtual || !server) return undefined;
  const [clientPort, virtualPort, serverPort] = [1, 3, 5].map((at) => Number.parseInt(fields[at] ?? '', 16));
  return {
    protocol,
    client,
    clientPort: clientPort!,
    virtual,
    virtualPort: virtualPort!,
    server,
    serverPort: serverPort!,
    state: fields[6] ?? '',
    expiresSeconds: Number(fields[7]),
  };
}

/** IPv4 stands as eight digits, IPv6 as it is written. */
function address(text: string | undefined): IpAddress | undefined {
  if (text === undefined) return undefined;
  return /^[0-9A-F]{8}$/.test(text) ? ipFromBytes(Uint8Array.from(Buffer.from(text, 'hex'))) : tryParseIp(text);
}

function* pieces(file: number): Generator<string> {
  const buffer = Buffer.alloc(CHUNK);
  for (;;) {
    const length = readSync(file, buffer);
    if (length === 0) return;
    yield buffer.toString('latin1', 0, length);
  }
}
