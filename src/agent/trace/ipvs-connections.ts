import { readFileSync } from 'node:fs';
import { type IpAddress, ipEquals, ipFromBytes, tryParseIp } from '../../core/index.ts';
import type { TracedTuple } from './trace-table.ts';

/** What IPVS keeps of a connection. It neither traces nor tells events. */
export interface IpvsConnection {
  readonly client: IpAddress;
  readonly clientPort: number;
  readonly server: IpAddress;
  readonly serverPort: number;
  /** `SYN_RECV`, `ESTABLISHED`, `UDP`, … */
  readonly state: string;
}

const FILE = '/proc/net/ip_vs_conn';
const PROTOCOLS: Readonly<Record<number, string>> = { 6: 'TCP', 17: 'UDP', 132: 'SCTP' };
/** A trace is for people. */
const MOST = 100;

/** The connections of IPVS in the namespace of the calling thread that are asked for; empty without IPVS. */
export function ipvsConnections(tuples: readonly TracedTuple[]): readonly IpvsConnection[] {
  try {
    return parseIpvsConnections(readFileSync(FILE, 'utf8'), tuples);
  } catch {
    return [];
  }
}

/** Of the lines of /proc/net/ip_vs_conn: protocol, client, virtual server, server, state; numbers in base 16. Pure. */
export function parseIpvsConnections(text: string, tuples: readonly TracedTuple[]): IpvsConnection[] {
  const found: IpvsConnection[] = [];
  for (const line of text.split('\n').slice(1)) {
    const [protocol, ...fields] = line.trim().split(/\s+/);
    const [client, destination, server] = [0, 2, 4].map((at) => address(fields[at]));
    const [clientPort, port, serverPort] = [1, 3, 5].map((at) => Number.parseInt(fields[at] ?? '', 16));
    if (!client || !destination || !server) continue;
    const isAsked = tuples.some(
      (tuple) =>
        PROTOCOLS[tuple.protocol] === protocol &&
        tuple.port === port &&
        ipEquals(tuple.destination, destination) &&
        (!tuple.source || ipEquals(tuple.source, client)),
    );
    if (!isAsked) continue;
    found.push({ client, clientPort: clientPort!, server, serverPort: serverPort!, state: fields[6] ?? '' });
    if (found.length === MOST) break;
  }
  return found;
}

/** IPv4 stands as eight digits, IPv6 as it is written. */
function address(text: string | undefined): IpAddress | undefined {
  if (text === undefined) return undefined;
  return /^[0-9A-F]{8}$/.test(text) ? ipFromBytes(Uint8Array.from(Buffer.from(text, 'hex'))) : tryParseIp(text);
}
