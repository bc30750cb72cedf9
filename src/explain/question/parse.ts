import { formatIp, type IpAddress, type IpProtocol, specialRange, tryParseIp } from '../../core/index.ts';
import { type Destination, type Question, QuestionError, type Source } from './question.ts';

/** The limited broadcast address, which is of no range. */
const ALL_HOSTS = '255.255.255.255';

/** A question as it is written: the words of a command line. */
export interface WrittenQuestion {
  readonly destination: string;
  readonly source?: string | undefined;
  readonly protocol?: string | undefined;
}

const DESTINATIONS =
  '[svc/]NAMESPACE/NAME[:PORT], an address[:PORT] ([...] around IPv6 with a port), node:NODEPORT, or pod/NAMESPACE/NAME[:PORT]';
const SOURCES = '"node", an address, or pod/NAMESPACE/NAME';

/** @throws QuestionError with what is expected */
export function parseQuestion({ destination, source, protocol }: WrittenQuestion): Question {
  return {
    destination: parseDestination(destination),
    source: source === undefined ? { kind: 'any-pod' } : parseSource(source),
    protocol: protocol === undefined ? undefined : parseProtocol(protocol),
  };
}

function parseDestination(text: string): Destination {
  const named =
    /^(svc|service|pod)\/([^/:\s]+)\/([^/:\s]+)(?::([^:\s]+))?$/.exec(text) ??
    // As `nodeplane services` and `trace` write a Service.
    /^()(?!(?:svc|service|pod)\/)([a-z0-9-]+)\/([a-z0-9-]+)(?::([^:\s]+))?$/.exec(text);
  if (named) {
    const [, kind, namespace = '', name = '', port] = named;
    if (kind === 'pod') {
      return { kind, namespace, name, port: port === undefined ? undefined : portOf(port, text) };
    }
    // Names of ports have a letter.
    const isNumber = port !== undefined && /^[+-]?\d+$/.test(port);
    return { kind: 'service', namespace, name, port: isNumber ? String(portOf(port, text)) : port };
  }
  const nodePort = /^node:(\d+)$/.exec(text);
  if (nodePort) return { kind: 'node-port', port: portOf(nodePort[1]!, text) };
  const whole = tryParseIp(text);
  if (whole) return { kind: 'address', address: somebody(whole, text, 'destination') };
  const [, bracketed, plain, port] = /^(?:\[([^\]]+)\]|([^:]+)):([^:]+)$/.exec(text) ?? [];
  const address = tryParseIp(bracketed ?? plain ?? '');
  if (address && port !== undefined)
    return { kind: 'address', address: somebody(address, text, 'destination'), port: portOf(port, text) };
  throw new QuestionError(`Cannot read "${text}" as a destination: expected ${DESTINATIONS}`);
}

/**
 * Who connects to the unspecified address gets himself, by whichever of his addresses the kernel likes; groups and all
 * hosts of a link answer datagrams, if anybody does, and nobody sends from there.
 */
function somebody(address: IpAddress, text: string, what: 'destination' | 'source'): IpAddress {
  const range = specialRange(address);
  if (range !== 'unspecified' && range !== 'multicast' && formatIp(address) !== ALL_HOSTS) return address;
  throw new QuestionError(`Cannot read "${text}" as a ${what}: expected an address that one host has`);
}

function parseSource(text: string): Source {
  if (text === 'node') return { kind: 'node' };
  const named = /^pod\/([^/:\s]+)\/([^/:\s]+)$/.exec(text);
  if (named) return { kind: 'pod', namespace: named[1]!, name: named[2]! };
  const address: IpAddress | undefined = tryParseIp(text);
  if (address) return { kind: 'address', address: somebody(address, text, 'source') };
  throw new QuestionError(`Cannot read "${text}" as a source: expected ${SOURCES}`);
}

function parseProtocol(text: string): IpProtocol {
  const upper = text.toUpperCase();
  if (upper === 'TCP' || upper === 'UDP' || upper === 'SCTP') return upper;
  throw new QuestionError(`Cannot read "${text}" as a protocol: expected tcp, udp or sctp`);
}

function portOf(text: string, whole: string): number {
  const port = /^\d{1,5}$/.test(text) ? Number(text) : 0;
  if (port >= 1 && port <= 65_535) return port;
  throw new QuestionError(`Cannot read "${text}" in "${whole}" as a port: expected a number from 1 to 65535`);
}
