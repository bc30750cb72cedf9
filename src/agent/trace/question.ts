import {
  formatIpPort,
  IP_PROTOCOLS,
  type IpAddress,
  type IpProtocol,
  NodeplaneError,
  plainText,
  protocolText,
  tryParseIp,
} from '../../core/index.ts';
import { AGENT_ADDRESS, servicesCommand } from '../status/own-commands.ts';
import type { Status } from '../status/status.ts';
import type { TracedTuple } from './trace-table.ts';

/** What is asked, in the words of the command line. */
export interface TraceQuestion {
  /** An address, or `any`. */
  readonly source: string;
  /** `ADDRESS:PORT`, `[ADDRESS]:PORT`, or `NAMESPACE/NAME[:PORT]` of a Service, with or without `svc/` before it. */
  readonly destination: string;
  /** `tcp`, `udp` or `sctp`. */
  readonly protocol: string;
}

/** The question as it is understood. */
export interface UnderstoodQuestion {
  readonly tuples: readonly TracedTuple[];
  /** `shop/web`; undefined: an address was asked for. */
  readonly service: string | undefined;
}

/** Finds what fits a Service name; the agent's status. */
export type FindServices = (query: string) => Promise<Status['services']['services']>;

/**
 * Understands what is asked.
 *
 * @param address where `find` asks the agent. @default where it is by default
 * @throws ERR_CONFIG in words of the command line; what `find` throws for a Service
 */
export async function understand(
  question: TraceQuestion,
  find: FindServices,
  address = AGENT_ADDRESS,
): Promise<UnderstoodQuestion> {
  const name = question.protocol.toUpperCase();
  if (!Object.hasOwn(IP_PROTOCOLS, name)) throw wrong(`--proto is tcp, udp or sctp, found "${question.protocol}"`);
  const protocol = IP_PROTOCOLS[name as IpProtocol];
  const source = sourceOf(question.source);
  const literal = readAddressPort(question.destination);
  if (literal) {
    const tuple = { source, destination: literal.address, port: literal.port, protocol };
    if (source && source.family !== literal.address.family) {
      throw wrong(`${question.source} and ${question.destination} are of different families`);
    }
    return { tuples: [tuple], service: undefined };
  }
  const [, service, port] = /^(?:svc\/)?([^/:]+\/[^/:]+)(?::(\S+))?$/.exec(question.destination) ?? [];
  if (service === undefined) {
    throw wrong(
      `The destination is ADDRESS:PORT, [ADDRESS]:PORT or NAMESPACE/NAME[:PORT] of a Service, found "${plainText(question.destination)}"`,
    );
  }
  const found = (await find(service)).find((one) => one.name === service);
  const ports = (found?.ports ?? []).filter(
    (one) => one.protocol === name && (port === undefined || port === String(one.port) || port === one.portName),
  );
  const tuples = ports.flatMap((one) =>
    [one.clusterIp, ...one.externalIps, ...one.loadBalancerVips].flatMap((text) => {
      const destination = tryParseIp(text);
      const fits = destination && (!source || source.family === destination.family);
      return fits ? [{ source, destination, port: one.port, protocol }] : [];
    }),
  );
  if (tuples.length > 0) return { tuples: tuples.slice(0, MOST_TUPLES), service };
  const what = found
    ? `has no ${name} port${port === undefined ? '' : ` ${plainText(port)}`} for this source`
    : 'is not served here';
  throw wrong(
    `Service "${plainText(service)}" ${what}. "${plainText(servicesCommand(address, service))}" shows what there is`,
  );
}

/** Each costs every packet of the node a few comparisons while the trace runs. */
const MOST_TUPLES = 16;

/** `10.96.0.10:80/tcp` */
export function tupleText({ destination, port, protocol }: TracedTuple): string {
  return `${formatIpPort(destination, port)}/${protocolText(protocol)}`;
}

function sourceOf(text: string): IpAddress | undefined {
  if (text === 'any') return undefined;
  const address = tryParseIp(text);
  if (address) return address;
  throw wrong(
    `The source is an address or "any", found "${plainText(text)}". kubectl get pod -o wide shows the address of a pod`,
  );
}

function readAddressPort(text: string): { readonly address: IpAddress; readonly port: number } | undefined {
  const [, bracketed, plain, digits] = /^(?:\[([0-9A-Fa-f:.]+)\]|([0-9.]+)):(\d{1,5})$/.exec(text) ?? [];
  const address = tryParseIp(bracketed ?? plain ?? '');
  const port = Number(digits);
  return address && port > 0 && port < 65_536 ? { address, port } : undefined;
}

function wrong(message: string): NodeplaneError {
  return new NodeplaneError('ERR_CONFIG', message);
}
