import { type Cidr, formatCidr, networkOf } from '../../../core/index.ts';
import type { PodReach } from '../../link/pod-network.ts';

/**
 * First packets of connections of any kind, from pods of a subnet or to them. Those to pods were sent to a host port or a NodePort.
 *
 * They stand for no pod in particular: what is refused of a single one, by its address or by its own link, network policies refuse.
 */
export interface PodPackets {
  readonly direction: 'from' | 'to';
  /** Its address is that of the network. */
  readonly subnet: Cidr;
  /**
   * By which the node reaches the pods: rules see it as the one that packets come in or leave by. Undefined where each pod has its own:
   * what is refused of the links of pods, as Calico's chains do of those that they do not know, is for network policies too.
   */
  readonly link: string | undefined;
}

/** What pods of a subnet send, and what they get. */
export function packetsOf(
  { address, prefixLength }: Cidr,
  { link, isShared }: Pick<PodReach, 'link' | 'isShared'>,
): PodPackets[] {
  const subnet = { address: networkOf(address, prefixLength), prefixLength };
  const shared = isShared ? link : undefined;
  return [
    { direction: 'from', subnet, link: shared },
    { direction: 'to', subnet, link: shared },
  ];
}

/** Each once. */
export function distinctPackets(all: readonly PodPackets[]): PodPackets[] {
  return [...new Map(all.map((one) => [`${one.direction} ${formatCidr(one.subnet)} ${one.link}`, one])).values()];
}
