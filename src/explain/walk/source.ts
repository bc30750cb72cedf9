import type { IpFamily } from '../../core/index.ts';
import type { ChainRef, NftRule } from '../../netlink/nftables/index.ts';
import type { Choose, Meeting } from '../choices.ts';
import type { Interface, KnownBytes, Packet } from '../packet/index.ts';

export type Hook = 'prerouting' | 'input' | 'forward' | 'output' | 'postrouting';

/** What rules and the way between the hooks ask of the host. Everything may be unknown: undefined. */
export interface Host {
  /** What `fib` expressions ask. @returns RTN_* of <linux/rtnetlink.h> for an address */
  addressType(address: KnownBytes, on?: Interface): number | undefined;
  /** By which interface a packet would leave that goes where this one's source (`back`) or destination is. */
  interfaceTo(packet: Packet, which: 'source' | 'destination'): Interface | 'none' | undefined;
  /** The address that masquerading puts on packets that leave by an interface. */
  addressOn(oif: Interface, packet: Packet): Uint8Array | undefined;
  /** The address to which redirecting leads packets that come in by an interface. */
  redirectedTo(iif: Interface, family: Packet['family']): Uint8Array | undefined;
  /** Whether packets of a class of traffic may be routed elsewhere than others. @default they are not */
  routesByClass?(family: Packet['family']): boolean;
  /**
   * The port of a bridge by which a packet with this `iif` came in, or by which the bridge itself sends it on, as `physdev` sees it.
   *
   * @default not known
   */
  bridgePort?(packet: Packet, direction: 'in' | 'out'): BridgePort;
  /**
   * The bridge that this packet has come in by, if it is one of its frames for another of its ports: such frames are
   * shown to rules and not routed, unless those translate whom they are for. @default none
   */
  switchedBy?(packet: Packet): Interface | undefined;
}

/**
 * A port of a bridge, whose name may not be known. `none`: the packet did not come through a bridge, or the bridge does not show its
 * packets to iptables (bridge-nf-call-iptables); or it is routed, and not sent on by the bridge.
 */
export type BridgePort = { readonly name: string | undefined } | 'none' | undefined;

/** Where a rule is evaluated. */
export interface Situation {
  readonly packet: Packet;
  readonly host: Host;
  readonly choose: Choose;
  readonly meeting: Meeting;
}

/** Rules of a part of the kernel: what it hooks in, and what that does with a packet. */
export interface RuleSource {
  readonly name: Step['source'];
  /** In the order in which the kernel runs them. */
  stations(hook: Hook, family: Packet['family']): readonly Station[];
}

/** What is hooked in at one place: a base chain, a part of IPVS. */
export interface Station {
  /**
   * Those of type `nat` run where the kernel translates, whatever their priority. After those of type `route` in hook output a packet they
   * have changed is routed anew.
   */
  readonly type: 'filter' | 'nat' | 'route';
  /** NF_IP_PRI_*, <linux/netfilter_ipv4.h>. */
  readonly priority: number;
  /** @param steps gets each rule that matched, in that order, and the policy if it came to that */
  run(situation: Situation, steps: Step[]): StationResult;
}

/** What a station does with a packet. `accept` goes on with the next one. */
export type StationResult =
  | { readonly kind: 'drop' }
  /** `isRerouted`: after it was routed anew, by what it is now. */
  | { readonly kind: 'accept'; readonly isRerouted?: boolean }
  | { readonly kind: 'reject'; readonly how: string }
  /** `at`: the rule whose effect is not known. */
  | { readonly kind: 'cannot tell'; readonly about: string; readonly at?: Step }
  /** It is sent anew, beginning with hook `output`: what IPVS does with packets to another host. */
  | { readonly kind: 'sent anew' };

/** One rule that matched, or the policy at the end of a base chain. */
export type Step = NftStep | IptablesStep | IpvsStep;

interface AnyStep {
  readonly hook: Hook;
  /** `accept`, `jump CHAIN`, `continue`. */
  readonly verdict: string;
}

export interface NftStep extends AnyStep {
  readonly source: 'nftables';
  readonly chain: ChainRef;
  /** Undefined for the policy. */
  readonly rule: NftRule | undefined;
  /** The rule as iptables-nft prints it, where that was looked at: without `-A CHAIN`. */
  readonly text?: string | undefined;
}

export interface IptablesStep extends AnyStep {
  readonly source: 'iptables-legacy';
  readonly chain: { readonly family: IpFamily; readonly table: string; readonly name: string };
  /** Undefined for the policy. */
  readonly rule: { readonly number: number; readonly text: string } | undefined;
}

export interface IpvsStep extends AnyStep {
  readonly source: 'ipvs';
  /** `name` is the virtual server: `10.96.0.1:443/tcp`. */
  readonly chain: { readonly table: 'ipvs'; readonly name: string };
  readonly rule: undefined;
}
