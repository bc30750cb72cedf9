import { formatIp, type IpAddress } from '../../../core/index.ts';
import type { NodeView } from '../../node/index.ts';

/** Whether an address is this node's own, or that of a pod of it. */
export function isHere(ip: IpAddress, node: NodeView): boolean {
  const text = formatIp(ip);
  return node.isOwnAddress(text) || node.podsAt(text).length > 0;
}
