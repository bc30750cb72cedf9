/** Numbers of the transport protocols a Service can have (IANA; IPPROTO_* in linux/in.h). */
export const IP_PROTOCOLS = { TCP: 6, UDP: 17, SCTP: 132 } as const;

/** The name of one of them, as Kubernetes spells it. */
export type IpProtocol = keyof typeof IP_PROTOCOLS;

const NAMES: ReadonlyMap<number, IpProtocol> = new Map(
  (Object.keys(IP_PROTOCOLS) as IpProtocol[]).map((name) => [IP_PROTOCOLS[name], name]),
);

/** `tcp` and so on, as rules and the tools of the node spell it. */
export type ProtocolWord = Lowercase<IpProtocol>;

const WORDS: Readonly<Record<IpProtocol, ProtocolWord>> = { TCP: 'tcp', UDP: 'udp', SCTP: 'sctp' };

/**
 * The protocol in lower case. Always the same text: V8 keeps one that was made, and then used as a key, in two bytes a character,
 * and so every rule and restore text it goes into.
 */
export function protocolWord(protocol: IpProtocol): ProtocolWord {
  return WORDS[protocol];
}

/** `tcp`; the number of one that no Service has. */
export function protocolText(number: number): string {
  const name = NAMES.get(number);
  return name ? WORDS[name] : String(number);
}

/** The protocol of a number; undefined for those no Service has. */
export function ipProtocolName(number: number): IpProtocol | undefined {
  return NAMES.get(number);
}
