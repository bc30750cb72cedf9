import type { Cidr, Clock, IpFamily } from '../../core/index.ts';
import type { Exec } from '../../sys/index.ts';
import type { IptablesVariant, LegacyWatch, NftTables } from '../rules/index.ts';
import type { IpvsKernel } from './kernel/kernel.ts';

/** How to make an IpvsDataplane. */
export interface IpvsDataplaneOptions {
  readonly family: IpFamily;
  /** Of the few iptables rules; see `detectVariant`. */
  readonly variant: IptablesVariant;
  /** Runs the iptables programs. @default the real one */
  readonly exec?: Exec;
  /** Of virtual servers whose Service names none (--ipvs-scheduler); empty: rr. @default rr */
  readonly scheduler?: string;
  /** Virtual servers and addresses of kube-ipvs0 in these ranges are not ours, unless we made them. @default none */
  readonly excludeCidrs?: readonly Cidr[];
  /** How long connections to an endpoint that is gone may last. @default 15 minutes */
  readonly gracePeriodMs?: number;
  /** @default the system's */
  readonly clock?: Clock;
  /** The tables of those rules as the kernel has them, of variant nft. @default what the programs tell is all */
  readonly kernelTables?: NftTables | undefined;
  /** Hears what is written of them, of variant legacy. @default nobody does */
  readonly legacyWatch?: LegacyWatch | undefined;
  /** Virtual servers, addresses and sets. @default those of the calling thread's network namespace */
  readonly kernel?: IpvsKernel;
}
