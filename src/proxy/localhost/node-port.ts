import { IP_PROTOCOLS } from '../../core/index.ts';
import type { ServicePortPlan } from '../index.ts';

/** A protocol and its port in one number, for there may be thousands to compare: IPPROTO_* in bits 16 to 23, the port below. */
export type NodePort = number;

/** Of a Service port, which has one. */
export function nodePortOf({ protocol, nodePort }: Pick<ServicePortPlan, 'protocol' | 'nodePort'>): NodePort {
  return (IP_PROTOCOLS[protocol] << 16) | nodePort;
}

/** As key of `inet_proto . inet_service`: in network byte order, each padded to 4 bytes. */
export function keyOfNodePort(nodePort: NodePort): Uint8Array {
  return Uint8Array.of(nodePort >>> 16, 0, 0, 0, nodePort >>> 8, nodePort, 0, 0);
}

/** The inverse of `keyOfNodePort`. */
export function nodePortOfKey(key: Uint8Array): NodePort {
  return (key[0]! << 16) | (key[4]! << 8) | key[5]!;
}
