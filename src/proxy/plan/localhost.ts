import { type IpAddress, type IpFamily, isLoopback } from '../../core/index.ts';
import { LOCALHOST_STAND_INS } from './bounds/stand-ins.ts';
import type { NodePlan } from './service-plan.ts';

/**
 * The addresses at which a dataplane has to translate NodePorts; `all`: every local one except loopback. Loopback
 * addresses are never among them: their stand-in is, where they answer on NodePorts.
 */
export function translatedNodePortAddresses(
  family: IpFamily,
  { nodePortAddresses, loopbackNodePorts }: Pick<NodePlan, 'nodePortAddresses' | 'loopbackNodePorts'>,
): 'all' | readonly IpAddress[] {
  if (nodePortAddresses === 'all') return 'all';
  const addresses = nodePortAddresses.filter((ip) => !isLoopback(ip));
  return loopbackNodePorts ? [...addresses, LOCALHOST_STAND_INS[family]] : addresses;
}
