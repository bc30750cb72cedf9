import type { IpAddress } from '../../core/index.ts';
import type { AttachmentNote } from '../../ipam/index.ts';
import type { Netlink } from '../../netlink/index.ts';
import type { NftElements, NftRuleset } from '../../netlink/nftables/index.ts';
import type { Link } from '../../netlink/route/index.ts';
import type { ChainWithRules, TableLayout } from '../../nft/index.ts';
import type { AssignedAddresses } from '../link/addressing.ts';
import type { Checking } from '../link/checking.ts';
import type { HostLink } from '../link/host-link.ts';
import type { PodNamespace } from '../link/pod-namespace.ts';
import type { UndoStack } from '../link/undo.ts';
import type { AttachmentKey } from '../protocol/attachment-key.ts';
import type { Environment, NetworkName } from '../protocol/environment.ts';
import type { NetworkHeader } from '../protocol/header.ts';
import type { CniResult, ResultInterface } from '../protocol/result.ts';
import type { PodPackets } from './obstacles/packets.ts';
import type { AdmissionRule } from './tables/forward-rules.ts';
import type { FeatureChoice, WantedAttachment } from './wanted-attachment.ts';

/**
 * Something a network gives its pods beyond the interface and its addresses: masquerade, mapped ports, a limited
 * bandwidth, passage through the node's firewall.
 *
 * A feature keeps what it knows about an attachment in the kernel objects themselves, findable by the attachment's key:
 * DEL may come without configuration, without result and after the pod's namespace is gone, and a process may be killed
 * between any two steps. All methods but `setUp` are synchronous.
 */
export interface AttachmentFeature {
  /** For messages and failpoints: one word, lower case. */
  readonly name: string;
  /** The table of ours whose sets its elements are in; undefined when it has none. */
  readonly layout?: TableLayout;
  /**
   * What an attachment that has this feature wants in nf_tables, as data: ADD makes it, CHECK compares with it, and the
   * agent brings it back after others flushed the ruleset. Empty for a feature of other kernel objects. Pure.
   *
   * @throws CniError for what cannot be done, as ADD would
   */
  wantedIn(attachment: WantedAttachment): Partial<DesiredRules>;
  /**
   * Called by ADD when the interface stands: up, with addresses and routes, the bridge or the host's routes complete.
   * Puts the way back of each step on `undo` before it takes the step. What an earlier attempt of the same attachment
   * left is replaced.
   *
   * @returns interfaces it made, to be listed in the result behind the others
   * @throws CniError (103 for a host port in use); errors of the layers below
   */
  setUp(context: SetUpContext): readonly MadeInterface[] | Promise<readonly MadeInterface[]>;
  /**
   * Called by CHECK, for features that are wanted. Changes nothing.
   *
   * @returns a sentence for each difference between kernel and configuration; empty when all is well
   */
  check(context: FeatureContext): readonly string[];
  /**
   * Called before the link of the pod is deleted, by DEL, by GC, and for a pod that vanished: removes what `setUp` made in the
   * pod's namespace, which lives on when others hold it. For the features that the record of the attachment names.
   *
   * @throws only what trying again may heal
   */
  leavePod?(context: LeaveContext): void;
  /**
   * Called by DEL whatever the configuration says now, after the link is gone and before the addresses are given back: for
   * the features that the record of the attachment names, for all of them when there is no record. Removes what `setUp`
   * made for the attachment; nothing there is fine. It should cost one request to the kernel when there is nothing.
   *
   * @throws only what trying again may heal
   */
  tearDown(context: TearDownContext): void;
  /** Called by GC: removes what belongs to attachments of the network that are not among the valid ones. */
  collect(context: CollectContext): void;
  /**
   * Called by CHECK for an interface of the feature's own that the result of ADD names (`FeatureEntry.ownInterface`). Its routes are
   * compared with all others of that result.
   */
  checkInterface?(checking: Pick<Checking, 'pod' | 'previous' | 'differ'>): void;
  /**
   * Called by DEL, for the features that `tearDown` is called for, when all of them are taken down: gives back addresses that
   * another plugin gave.
   *
   * @param note of the attachment's record
   * @throws CniError of that plugin
   */
  giveBackAddresses?(request: Asked, note: AttachmentNote | undefined): Promise<void>;
  /** Called by GC when everything else is collected: the same for all attachments but the valid ones. Throws CniError. */
  collectAddresses?(request: Asked, valid: readonly AttachmentKey[]): Promise<void>;
  /**
   * Called by the uninstallation, when no pod is left: removes what the feature keeps outside of its table.
   *
   * @returns a sentence for each thing removed
   */
  uninstall?(ruleset: NftRuleset): string[];
}

/** A request as it came, for a plugin that the feature runs. */
export interface Asked {
  readonly header: NetworkHeader;
  readonly env: Environment;
  readonly warn: (message: string) => void;
}

/** The desired state of attachments in nf_tables. */
export interface DesiredRules {
  /** Elements of sets of our tables, each with the comment that names its attachment. */
  readonly elements: readonly NftElements[];
  /** Chains that these need besides those that are always there. */
  readonly chains: readonly ChainWithRules[];
  /** Rules in the chain FORWARD of iptables-nft. */
  readonly admissions: readonly AdmissionRule[];
  /** Packets of pods of this node that are to pass the node's rules: what refuses them is told. */
  readonly passing: readonly PodPackets[];
}

/** A feature that is known but not loaded: its code, and what that imports, costs nothing until it is wanted. */
export interface FeatureEntry {
  /** As in `AttachmentFeature`. */
  readonly name: string;
  /** Whether an attachment is to have this feature. */
  wanted(attachment: FeatureChoice): boolean;
  /** Of a feature that gives pods an interface of its own, about which ADD decides by the rules of its day and nobody later. */
  readonly ownInterface?: {
    /** Its key of the configuration, which CHECK passes over. */
    readonly key: string;
    /** Whether ADD made it, by its result. */
    isIn(previous: CniResult): boolean;
  };
  load(): Promise<AttachmentFeature>;
}

/** What ADD and CHECK tell a feature. `undo` and `warn` are of no use to CHECK. */
export interface FeatureContext extends WantedAttachment {
  /** A NETLINK_ROUTE socket of the node. Other protocols: `Netlink.open`, in the calling thread's namespace. */
  readonly host: Netlink;
  /** The host's end of the veth pair; its `peerIndex` is the pod's end. */
  readonly hostLink: HostLink;
  /** The link through which the node reaches pods of a bridge: the bridge, or that of the VLAN; undefined without one. */
  readonly gateway: Link | undefined;
  readonly undo: UndoStack;
  /** Takes warnings for people, also when the verb succeeds. */
  readonly warn: (message: string) => void;
}

/** What only ADD tells a feature. */
export interface SetUpContext extends FeatureContext {
  /** The pod's namespace: its descriptor, a socket in it, and a way to run a function inside. */
  readonly pod: PodNamespace;
  /** The pod's gateways on its network, by which it reaches the node. */
  readonly gateways: readonly IpAddress[];
  /** The request as it came, for a plugin that the feature runs. */
  readonly header: NetworkHeader;
  readonly env: Environment;
}

/** An interface that a feature made, and what goes with it. */
export type MadeInterface = ResultInterface & Partial<Pick<AssignedAddresses, 'ips' | 'routes'>>;

/** What a feature is told that has something in the pod's namespace. */
export interface LeaveContext {
  readonly key: AttachmentKey;
  /** As in `FeatureContext`. */
  readonly host: Netlink;
  /** Undefined when nobody gave us the namespace, or it is gone. */
  readonly pod: PodNamespace | undefined;
}

/** What DEL tells a feature. */
export interface TearDownContext {
  readonly key: AttachmentKey;
  /** As in `FeatureContext`. */
  readonly host: Netlink;
  /** Addresses the attachment still holds by its records; empty when it has none, or another plugin manages them. */
  readonly addresses: readonly IpAddress[];
  readonly warn: (message: string) => void;
}

/** What GC tells a feature. */
export interface CollectContext {
  /** Only what belongs to this network may be removed. */
  readonly network: NetworkName;
  /** The attachments that must stay: those that the runtime names, and those whose ADD is under way. */
  readonly valid: readonly AttachmentKey[];
  /** As in `FeatureContext`. */
  readonly host: Netlink;
}
