import { type IpAddress, type IpFamily, ipFromBytes, readU32 } from '../../core/index.ts';
import type { RouteAnswer, RouteQuestion } from '../../netlink/route/index.ts';
import { RTN_LOCAL, RTN_UNICAST } from '../../netlink/uapi/index.ts';
import type { Interface, Packet } from '../packet/index.ts';
import type { Host, Origin, Start } from '../walk/index.ts';
import { bridgePort, switchedBy } from './bridge-ports.ts';
import { globalAddresses, masqueradeSource } from './masquerade-source.ts';
import type { NodeView } from './node-view.ts';

/** For a walk of packets of a family that begins on this node. */
export function startOf(origin: Origin, family: IpFamily, node: NodeView): Start {
  return { origin, sources: node.rulesFor(family).sources, host: hostOf(node) };
}

/** What rules ask of this node, answered by its routing tables, policy rules and marks included. */
export function hostOf(node: NodeView): Host {
  return {
    addressType(address, on) {
      if (!address.isKnown) return undefined;
      const ip = ipFromBytes(address.bytes);
      if (on) return ip.family === 'IPv4' ? typeOn(on, ip, node) : undefined;
      const answer = node.route({ destination: ip });
      // inet_addr_type: what no route says anything about is unicast.
      return answer.kind === 'route' ? answer.route.type : RTN_UNICAST;
    },
    interfaceTo(packet, which) {
      const address = packet.ends[which];
      if (!address.isKnown || !packet.mark.isKnown) return undefined;
      const mark = readU32(packet.mark.bytes, 0) || undefined;
      const plain = { destination: ipFromBytes(address.bytes), mark };
      const answer = which === 'destination' ? wayOf(packet, plain, node) : node.route(plain);
      if (answer.kind === 'refused') return 'none';
      const link = node.link(answer.route.outInterface);
      return link && interfaceOf(link);
    },
    bridgePort: (packet, direction) => bridgePort(packet, direction, node),
    switchedBy(packet) {
      const bridge = switchedBy(packet, node);
      return bridge && interfaceOf(bridge);
    },
    routesByClass: (family) => node.routesByClass(family),
    addressOn(oif, { ends: { destination } }) {
      return destination.isKnown ? masqueradeSource(oif.index, ipFromBytes(destination.bytes), node)?.bytes : undefined;
    },
    // nf_nat_redirect_ipv4, net/netfilter/nf_nat_redirect.c.
    redirectedTo: ({ index }, family) => globalAddresses(index, family, node)[0]?.address.bytes,
  };
}

/**
 * The way of a packet, for policy rules that ask whom it is from and by which link it came. What is refused for those is asked about
 * elsewhere (lookAtRoutes); what comes back by its own link may be a frame that its bridge sends on.
 */
function wayOf({ family, iif, ends }: Packet, plain: RouteQuestion, node: NodeView): RouteAnswer {
  const answer = node.route(plain);
  if (!node.hasPolicyRules(family) || !ends.source.isKnown) return answer;
  if (answer.kind === 'route' && (answer.route.outInterface === iif?.index || answer.route.type === RTN_LOCAL))
    return answer;
  const precise = node.route({ ...plain, source: ipFromBytes(ends.source.bytes), inInterface: iif?.index });
  return precise.kind === 'route' ? precise : answer;
}

/** inet_dev_addr_type, net/ipv4/fib_frontend.c: an address of another interface is like one of nobody. */
function typeOn(on: Interface, ip: IpAddress, node: NodeView): number {
  const answer = node.route({ destination: ip, matched: true });
  return answer.kind === 'route' && answer.route.outInterface === on.index ? answer.route.type : RTN_UNICAST;
}

/** A link as rules know it. */
export function interfaceOf({ index, name }: { readonly index: number; readonly name: string }): Interface {
  return { index, name };
}
