import type { NftChain, NftCounter, NftElements, NftRule, NftSet, NftTable } from '../object/model.ts';

/**
 * What the kernel tells about a transaction: its objects, then its generation. One event may hold many elements. Those of
 * a flushed set are told, those of a deleted set are not.
 */
export type NftEvent =
  | {
      readonly kind: 'new' | 'deleted';
      readonly object: NftTable | NftChain | NftRule | NftSet | NftElements | NftCounter;
    }
  /** The transaction is complete. */
  | {
      readonly kind: 'generation';
      readonly generation: number;
      /** The thread that made it, by its number outside all containers, and its name. */
      readonly processId: number;
      readonly processName: string;
      /** Made over an `Nftables` of this process. */
      readonly own: boolean;
    }
  /** Events were lost, because they came faster than they were read, or could not be read: list everything again. */
  | { readonly kind: 'overrun' };
