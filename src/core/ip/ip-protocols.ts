/** Numbers of the transport protocols a Service can have (IANA; IPPROTO_* in linux/in.h). */
export const IP_PROTOCOLS = { TCP: 6, UDP: 17, SCTP: 132 } as const;

/** The name of one of them, as Kubernetes spells it. */
export type IpProtocol = keyof typeof IP_PROTOCOLS;

const NAMES: ReadonlyMap<number, IpProtocol> = new Map(
  (Object.keys(IP_PROTOCOLS) as IpProtocol[]).map((name) => [IP_PROTOCOLS[name], name]),
);

/** The protocol of a number; undefined for those no Service has. */
export function ipProtocolName(number: number): IpProtocol | undefined {
  return NAMES.get(number);
}
