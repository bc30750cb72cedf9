import type { IpAddress, IpFamily, KernelError } from '../../../core/index.ts';
import type { ListedDestination, ListedVirtualServer, VirtualServerKey } from '../../../netlink/ipvs/index.ts';
import type { SetElement } from '../compile/sets.ts';
import type { Operation } from '../diff/operations.ts';

/** What the kernel offers of IPVS, addresses and sets, in one network namespace and family. Everything is synchronous. */
export interface IpvsKernel {
  readonly family: IpFamily;
  /** All virtual servers of the family, foreign ones too. */
  listServers(): ListedVirtualServer[];
  /** None when there is no such virtual server. */
  listDestinations(key: VirtualServerKey): ListedDestination[];
  /** Addresses of kube-ipvs0, and of all other interfaces; without loopback and IPv6 link-local ones. */
  listAddresses(): { readonly bound: IpAddress[]; readonly elsewhere: IpAddress[] };
  /** Members of those of our sets that exist. */
  listElements(): SetElement[];
  /** kube-ipvs0 and those of our sets that are missing or of another shape, in words: `ipset KUBE-CLUSTER-IP`. */
  wrong(): string[];
  /** Makes kube-ipvs0 and our sets where they are missing; sets of another shape are replaced, which rules do not notice. */
  prepare(): void;
  /**
   * Makes changes of one subsystem (`SUBSYSTEM_OF`), many in one datagram. One that is refused does not keep the others from being
   * made.
   *
   * @returns for each undefined, or why it was refused
   */
  apply(operations: readonly Operation[]): readonly (KernelError | undefined)[];
  /** What `removeAll` removes, in words: `device kube-ipvs0`, `ipset KUBE-CLUSTER-IP`. */
  removable(): string[];
  /** Removes kube-ipvs0 and our sets of this family; the device only when no address of the other family is on it. */
  removeAll(): void;
  /** Gives the sockets back. */
  close(): void;
}
