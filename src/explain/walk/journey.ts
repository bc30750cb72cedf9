import { RTN_LOCAL } from '../../netlink/uapi/rtnetlink.ts';
import { type Interface, KnownBytes, type Packet } from '../packet/index.ts';
import type { Hook, Host, RuleSource, Situation, StationResult, Step } from './source.ts';
import { IPS } from './translate.ts';
import { walkHook } from './walk-hook.ts';

/** How a packet ends on this host. */
export type End =
  | { readonly kind: 'delivered' }
  | { readonly kind: 'sent'; readonly by: Interface }
  | { readonly kind: 'no route' }
  /** `cannot tell` without `at`: it is not known where the routing table sends it. */
  | Exclude<StationResult, { readonly kind: 'accept' | 'sent anew' }>;

/** A packet's way through the host. */
export interface Walk {
  readonly steps: readonly Step[];
  readonly end: End;
  /** As it was at its end: translated, marked. */
  readonly packet: Packet;
  /** Its mark when it was routed last, which policy rules may have asked for. */
  readonly routedBy: KnownBytes;
  /** The source it had then. */
  readonly routedFrom: KnownBytes;
  /** What it was when it was routed first, coming in by an interface. @default it was not */
  readonly arrived?: Arrived | undefined;
}

export interface Arrived {
  readonly mark: KnownBytes;
  readonly source: KnownBytes;
  readonly destination: KnownBytes;
}

/** Where a packet comes from: an interface, or this host. */
export type Origin = Interface | 'this host';

const NO_MARK = KnownBytes.of(new Uint8Array(4));

/** Where a walk begins, and what has a say on it. */
export interface Start {
  readonly origin: Origin;
  /** All that has rules on the host: a source that is left out counts as empty. */
  readonly sources: readonly RuleSource[];
  readonly host: Host;
}

/**
 * Takes a packet through a host, hook by hook, by one of the ways that chance and ignorance leave open.
 *
 * @param situation the packet, which is changed, and who chooses among the ways
 * @throws whatever the reading of rules throws
 */
export function walkOnce({ origin, sources, host }: Start, situation: Omit<Situation, 'host'>): Walk {
  return new Journey(origin, sources, { ...situation, host }).walk();
}

/** One packet's way through a host, hook by hook. */
class Journey {
  readonly #packet: Packet;
  readonly #origin: Origin;
  readonly #sources: readonly RuleSource[];
  readonly #situation: Situation;
  readonly #steps: Step[] = [];
  #routedBy: KnownBytes;
  #routedFrom: KnownBytes;
  #arrived: Arrived | undefined;
  /** Where it goes, by the last time it was routed. */
  #way: Way | undefined;

  constructor(origin: Origin, sources: readonly RuleSource[], situation: Situation) {
    this.#packet = situation.packet;
    this.#origin = origin;
    this.#sources = sources;
    this.#situation = situation;
    this.#routedBy = situation.packet.mark;
    this.#routedFrom = situation.packet.ends.source;
  }

  walk(): Walk {
    const origin = this.#origin;
    if (origin !== 'this host') this.#packet.iif = origin;
    const end = (origin === 'this host' ? this.#goOut() : undefined) ?? this.#comeIn();
    return {
      end,
      steps: this.#steps,
      packet: this.#packet,
      routedBy: this.#routedBy,
      routedFrom: this.#routedFrom,
      arrived: this.#arrived,
    };
  }

  /** From a process of this host to an interface, where it ends unless that is `lo`. */
  #goOut(): End | undefined {
    const packet = this.#packet;
    const refused = this.#route();
    if (refused) return refused;
    packet.oif = this.#way!.oif;
    const ended = this.#through('output');
    if (ended) return ended;
    // It may have been routed anew there, and the hook has seen it leave by the first way nevertheless.
    const { oif, local } = this.#way!;
    packet.oif = oif;
    const left = this.#through('postrouting');
    if (left || !local) return left ?? { kind: 'sent', by: oif };
    // Its flow is entered behind the last of these hooks (nf_confirm), and it keeps it on the way back in.
    const { connection } = packet;
    if (typeof connection === 'object') connection.status |= IPS.confirmed;
    [packet.iif, packet.oif] = [oif, undefined];
    return undefined;
  }

  /** From an interface to a process of this host, or to another interface. */
  #comeIn(): End {
    const packet = this.#packet;
    const isOwn = this.#origin === 'this host';
    const { destination } = packet.ends;
    const bridge = isOwn ? undefined : this.#situation.host.switchedBy?.(packet);
    const ended = this.#through('prerouting');
    if (ended) return ended;
    // What comes back in by lo keeps the way it was sent by (loopback_xmit: skb_dst_force), unless it is for somebody else now.
    const isRouted = (bridge || isOwn) && packet.ends.destination.text === destination.text;
    if (bridge && isRouted) this.#way = { oif: bridge, local: false };
    const refused = isRouted ? undefined : this.#route();
    if (refused) return refused;
    const { oif, local } = this.#way!;
    if (local) return this.#through('input') ?? { kind: 'delivered' };
    packet.oif = oif;
    const stopped = this.#through('forward');
    if (stopped) return stopped;
    // Of frames that a bridge sends on, hook postrouting is told no `in` (br_nf_post_routing, net/bridge/br_netfilter_hooks.c).
    const { oif: out } = this.#way!;
    packet.oif = out;
    packet.isIifSeen = out.index !== packet.iif?.index;
    return this.#through('postrouting') ?? { kind: 'sent', by: out };
  }

  /** Through a hook; what ends the packet there, if anything does. */
  #through(hook: Hook): End | undefined {
    const result = walkHook(hook, this.#sources, this.#situation, this.#steps, () => this.#route());
    if (result.kind === 'sent anew') return this.#sendAnew();
    return result.kind === 'accept' ? undefined : result;
  }

  /** Only to other hosts: what goes to this one is not sent anew (ip_vs_nat_send_or_cont, net/netfilter/ipvs/ip_vs_xmit.c). */
  #sendAnew(): End {
    const packet = this.#packet;
    const { mark } = packet;
    // By its destination alone (__ip_vs_get_out_rt of the same), and what is tracked then by its mark, as for
    // translation (nf_nat_ipv4_local_fn).
    packet.mark = NO_MARK;
    const alone = this.#route();
    packet.mark = mark;
    const refused = alone ?? (typeof packet.connection === 'object' ? this.#route() : undefined);
    if (refused) return refused;
    const { iif } = packet;
    [packet.iif, packet.oif] = [undefined, this.#way!.oif];
    const ended = this.#through('output');
    if (ended) return ended;
    // Of the hook behind it the kernel tells where it came in (skb->dev in ip_output, net/ipv4/ip_output.c).
    packet.iif = iif;
    return this.#through('postrouting') ?? { kind: 'sent', by: this.#way!.oif };
  }

  /** Routes it, by the mark it has now; what ends it there, if anything does. */
  #route(): End | undefined {
    const packet = this.#packet;
    const { source, destination } = packet.ends;
    [this.#routedBy, this.#routedFrom] = [packet.mark, source];
    if (this.#origin !== 'this host') this.#arrived ??= { mark: packet.mark, source, destination };
    const { host } = this.#situation;
    const type = host.addressType(destination);
    const oif = host.interfaceTo(packet, 'destination');
    if (type === undefined || oif === undefined) return { kind: 'cannot tell', about: 'its route' };
    if (oif === 'none') return { kind: 'no route' };
    this.#way = { oif, local: type === RTN_LOCAL };
    return undefined;
  }
}

interface Way {
  readonly oif: Interface;
  readonly local: boolean;
}
