import type { IpAddress } from '../../../core/index.ts';
import type { Destination, VirtualServer, VirtualServerKey } from '../../../netlink/ipvs/index.ts';
import type { SetElement } from '../compile/sets.ts';

/** One change of the kernel's state; each is one netlink message at most. */
export type Operation = (
  | { readonly kind: 'newServer' | 'setServer'; readonly virtual: VirtualServer }
  | { readonly kind: 'deleteServer'; readonly key: VirtualServerKey }
  | {
      readonly kind: 'newDestination' | 'setDestination' | 'deleteDestination';
      readonly key: VirtualServerKey;
      /** `ip:port` */
      readonly endpoint: string;
      readonly destination: Destination;
    }
  | { readonly kind: 'addElement' | 'deleteElement'; readonly element: SetElement }
  /** An address of kube-ipvs0. */
  | { readonly kind: 'bind' | 'unbind'; readonly ip: IpAddress }
) & {
  /** Keys of the Service ports it is for: to blame if the kernel refuses it. None: it takes something away. */
  readonly owners: readonly string[];
};

/** The part of the kernel an operation changes; each has a socket of its own. */
export type Subsystem = 'servers' | 'sets' | 'addresses';

export const SUBSYSTEM_OF: Readonly<Record<Operation['kind'], Subsystem>> = {
  newServer: 'servers',
  setServer: 'servers',
  deleteServer: 'servers',
  newDestination: 'servers',
  setDestination: 'servers',
  deleteDestination: 'servers',
  addElement: 'sets',
  deleteElement: 'sets',
  bind: 'addresses',
  unbind: 'addresses',
};

/** Whether a refusal says that the operation was done already. */
export function isDoneAlready(operation: Operation, errnoName: string): boolean {
  switch (operation.kind) {
    case 'deleteServer':
      return errnoName === 'ESRCH';
    case 'deleteDestination':
      return errnoName === 'ENOENT' || errnoName === 'ESRCH';
    case 'unbind':
      return errnoName === 'EADDRNOTAVAIL';
    case 'bind':
      return errnoName === 'EEXIST';
    default:
      return false;
  }
}

/** Whether a refusal says that the kernel does not hold what it was thought to hold. */
export function isStale(operation: Operation, errnoName: string): boolean {
  switch (operation.kind) {
    case 'newServer':
      return errnoName === 'EEXIST';
    case 'setServer':
      return errnoName === 'ESRCH';
    case 'newDestination':
      return errnoName === 'EEXIST' || errnoName === 'ESRCH';
    case 'setDestination':
      return errnoName === 'ENOENT' || errnoName === 'ESRCH';
    default:
      return false;
  }
}
