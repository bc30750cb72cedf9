import type { Endpoint } from '../endpoint.ts';
import { type Place, topologyOf } from '../select.ts';
import type { ServicePortPlan } from '../service-plan.ts';
import { isExternallyAccessible } from '../service-port.ts';

/** What keeps a Service port from doing what its author may expect, although all of it is programmed. */
export type TroubleCause =
  /** Its traffic fails on this node: policy Local, and no endpoint runs here. */
  | 'no-local-endpoints'
  /** Its endpoints have topology hints, which do not count. */
  | 'hints-ignored';

/** Why a port fails for some of its clients although it is programmed. */
export interface PortTrouble {
  readonly cause: TroubleCause;
  /** For people: what fails, and why. */
  readonly text: string;
}

/** The troubles of a port as planned; most have none. */
export function troublesOf(port: ServicePortPlan, place: Place): readonly PortTrouble[] {
  const troubles: PortTrouble[] = [];
  const failing = whereDropped(port);
  if (failing !== '') {
    const text = `${failing} get no answer: the policy is Local, and no ready endpoint runs on node "${place.nodeName}"; others do elsewhere`;
    troubles.push({ cause: 'no-local-endpoints', text });
  }
  const ignored = whyHintsIgnored(port, place);
  if (ignored !== undefined) {
    troubles.push({ cause: 'hints-ignored', text: `All ready endpoints are used, wherever they are: ${ignored}` });
  }
  return troubles;
}

/** Which connections are dropped. Where a load balancer asks for health it sends none to this node, as it is meant. */
function whereDropped(port: ServicePortPlan): string {
  if (port.internalVerdict === 'drop') return 'Connections to the ClusterIP from this node';
  const unasked = port.healthCheckNodePort === 0 && isExternallyAccessible(port);
  return port.externalVerdict === 'drop' && unasked ? 'Connections from outside to the Service at this node' : '';
}

/** Undefined: there are none, or they count, or they are for other nodes while zones do not matter. */
function whyHintsIgnored({ clusterEndpoints }: ServicePortPlan, place: Place): string | undefined {
  if (!clusterEndpoints.some(isHinted)) return undefined;
  const ready = clusterEndpoints.filter((endpoint) => endpoint.ready);
  const zoned = ready.filter(({ zoneHints }) => zoneHints.length > 0).length;
  const noded = ready.filter(({ nodeHints }) => nodeHints.length > 0).length;
  if (topologyOf(ready, place) !== 'everywhere') return undefined;
  const count = Math.max(zoned, noded);
  if (count < ready.length) {
    const kind = zoned >= noded ? 'zones' : 'nodes';
    return `${ready.length - count} of ${ready.length} have no hint for ${kind}, and hints count only if all have them`;
  }
  if (zoned < ready.length) return undefined;
  if (place.zone === '')
    return 'the Node has no label topology.kubernetes.io/zone, so hints for zones cannot be followed';
  return `none is hinted for this node's zone "${place.zone}"`;
}

function isHinted({ ready, zoneHints, nodeHints }: Endpoint): boolean {
  return ready && zoneHints.length + nodeHints.length > 0;
}
