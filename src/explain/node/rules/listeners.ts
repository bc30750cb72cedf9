import { sameBytes } from '../../../core/index.ts';
import { type Listener, listListeners, withSockDiag } from '../../../netlink/sock-diag/index.ts';
import type { Facts } from '../../iptables/index.ts';
import { PROTOCOLS } from '../../packet/index.ts';

/** The protocols of which sockets are looked for in front of rules (nf_sk_lookup_slow_v4, net/ipv4/netfilter/nf_socket_ipv4.c). */
const LOOKED_FOR = { [PROTOCOLS.tcp]: 'TCP', [PROTOCOLS.udp]: 'UDP' } as const;

/** The sockets of the network namespace this thread is in that listen at one address, those of a protocol read once. */
export function listenersHere(): Required<Pick<Facts, 'isHeardAt'>>['isHeardAt'] {
  const known = new Map<number, readonly Listener[]>();
  return (protocol, address, port) => {
    const name = LOOKED_FOR[protocol as keyof typeof LOOKED_FOR];
    if (name === undefined) return false;
    if (!address.isKnown || !port.isKnown) return undefined;
    const listeners = known.get(protocol) ?? withSockDiag((netlink) => listListeners(netlink, name));
    known.set(protocol, listeners);
    return listeners.some(
      (one) =>
        sameBytes(one.address.bytes, address.bytes) && port.equals(Uint8Array.of(one.port >> 8, one.port & 0xff)),
    );
  };
}
