import { type IpAddress, type IpFamily, ipFromBytes, readU32 } from '../../core/index.ts';
import { RTN_LOCAL, RTN_UNICAST } from '../../netlink/uapi/index.ts';
import type { Interface } from '../packet/index.ts';
import type { Host } from '../walk/index.ts';
import type { NodeView } from './node-view.ts';

const SCOPE_UNIVERSE = 0;

/** What rules ask of this node, answered by its routing tables. Policy rules and marks count; what came in by which link does not. */
export function hostOf(node: NodeView): Host {
  const lookUp = (destination: IpAddress, mark?: number) => node.route({ destination, mark });
  return {
    addressType(address, on) {
      // Of one interface alone: inet_dev_addr_type, which no lookup answers.
      if (!address.isKnown || on) return undefined;
      const answer = lookUp(ipFromBytes(address.bytes));
      // inet_addr_type: what no route says anything about is unicast.
      return answer.kind === 'route' ? answer.route.type : RTN_UNICAST;
    },
    interfaceTo(packet, which) {
      const address = packet.ends[which];
      if (!address.isKnown || !packet.mark.isKnown) return undefined;
      const answer = lookUp(ipFromBytes(address.bytes), readU32(packet.mark.bytes, 0) || undefined);
      if (answer.kind === 'refused') return 'none';
      const link = node.link(answer.route.outInterface);
      return link && interfaceOf(link);
    },
    routesByClass: (family) => node.routesByClass(family),
    addressOn: (oif, packet) =>
      addressOn(
        node,
        oif,
        packet.family,
        packet.ends.destination.isKnown ? ipFromBytes(packet.ends.destination.bytes) : undefined,
      ),
  };
}

/** The address the kernel masquerades with: the route's preferred source, else the interface's first. */
function addressOn(
  node: NodeView,
  oif: Interface,
  family: IpFamily,
  destination: IpAddress | undefined,
): Uint8Array | undefined {
  const answer = destination && node.route({ destination });
  if (answer?.kind === 'route' && answer.route.source && answer.route.type !== RTN_LOCAL) {
    return answer.route.source.bytes;
  }
  return node.addresses.find(
    ({ address, index, scope }) => address.family === family && index === oif.index && scope === SCOPE_UNIVERSE,
  )?.address.bytes;
}

export function interfaceOf({ index, name }: { readonly index: number; readonly name: string }): Interface {
  return { index, name };
}
