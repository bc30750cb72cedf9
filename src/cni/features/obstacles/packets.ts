import { type Cidr, formatCidr } from '../../../core/index.ts';

/** First packets of connections of any kind, from pods of a subnet or to them. Those to pods were sent to a host port or a NodePort. */
export interface PodPackets {
  readonly direction: 'from' | 'to';
  readonly subnet: Cidr;
  /** By which the node reaches the pods: rules see it as the one that packets come in or leave by. */
  readonly link: string;
}

/** Each once. */
export function distinctPackets(all: readonly PodPackets[]): PodPackets[] {
  return [...new Map(all.map((one) => [`${one.direction} ${formatCidr(one.subnet)} ${one.link}`, one])).values()];
}
