import type { PodPackets, Refusal } from '../../cni/index.ts';
import type { IpFamily } from '../../core/index.ts';
import type { NftChain, NftTable } from '../../netlink/nftables/index.ts';
import type { InterfaceAddress, Link, Route } from '../../netlink/route/index.ts';
import type { IptablesVariant, SavedTable } from '../../proxy/rules/index.ts';
import type { Attachment, UnderlayChoice } from '../../routes/index.ts';
import type { Capability } from '../../sys/index.ts';
import type { Listener } from './listeners.ts';

/** Whether the node has what iptables needs, in one family. */
export interface IptablesProbe {
  readonly variant: IptablesVariant;
  /** Why this variant. */
  readonly reason: string;
  /** Undefined: it cannot be told without changing anything. */
  readonly hasNat: boolean | undefined;
  /** The program's words when it has none. @default '' */
  readonly said?: string;
}

/** What the kernel can do. Whoever asks leaves nothing behind but a module that the kernel has loaded. */
export interface KernelProbes {
  /** What mode nftables lacks, in words; undefined: nothing. */
  nftables(family: IpFamily): string | undefined;
  /** Rejects with ERR_IPTABLES when no variant works. */
  iptables(family: IpFamily): Promise<IptablesProbe>;
  /** By IFLA_INFO_KIND. */
  hasLinkKind(kind: string): boolean;
  hasNexthops(): boolean;
  hasIpvs(): boolean;
  /** Types of ipsets that mode ipvs needs and the kernel has not. */
  missingSetTypes(): readonly string[];
  hasConntrack(): boolean;
}

/** What the rules of one variant and family are; a reason where they cannot be read. */
export type IptablesState = ReadonlyMap<string, SavedTable> | { readonly unreadable: string };

/** What the node is and holds. Everything throws, or rejects, when it cannot be read. */
export interface NodeFacts {
  readonly kernel: KernelProbes;
  /** Why IPv6 is not served; undefined: it is. */
  whyNoIpv6(): string | undefined;
  /** Those of this process. */
  capabilities(): ReadonlySet<Capability>;
  /** Trimmed; undefined: this kernel has none of the name. */
  sysctl(name: string): string | undefined;
  /** Names in a folder of sysctls: `net/ipv4/conf` has those of interfaces. */
  sysctls(folder: string): readonly string[];
  /** Whether this process sees /proc/sys mounted for writing. */
  isProcSysWritable(): boolean;
  links(): readonly Link[];
  addresses(): readonly InterfaceAddress[];
  /** Of table main. */
  routes(): readonly Route[];
  /** The interface to the other nodes; undefined: none has the address, or the name. */
  underlay(family: IpFamily, choice: UnderlayChoice): Attachment | undefined;
  iptables(family: IpFamily, variant: IptablesVariant): Promise<IptablesState>;
  nftables(): { readonly tables: readonly NftTable[]; readonly chains: readonly NftChain[] };
  /** Where chains at hook forward refuse some of these packets, all of their kind. */
  refusals(packets: readonly PodPackets[]): readonly Refusal[];
  /** TCP sockets that listen. */
  listeners(): readonly Listener[];
  /** File names; undefined: there is no such folder. */
  files(folder: string): readonly string[] | undefined;
  /** The content of a file; undefined: there is none, or it cannot be read. */
  text(path: string): string | undefined;
}
