import type { Drift } from '../../core/index.ts';

/** What the WireGuard device lets others see; log and metrics live on it. */
export type WireguardEvent =
  | {
      readonly kind: 'synced';
      readonly full: boolean;
      readonly seconds: number;
      /** Peers that were made, changed or removed. */
      readonly changes: number;
      /** Those the device is to have. */
      readonly peers: number;
    }
  /** Nothing, or not all, was done; it is tried again from scratch. */
  | { readonly kind: 'syncFailed'; readonly error: unknown; readonly retryInMs: number }
  /** The device has this key, and others are told. */
  | { readonly kind: 'keyInForce'; readonly publicKey: Uint8Array }
  /** The key file cannot be used; the key before stays in force. */
  | { readonly kind: 'keyFailed'; readonly error: unknown }
  /** The kernel refused something of this Node; undefined: not any more. */
  | { readonly kind: 'refused'; readonly name: string; readonly reason: string | undefined }
  /** The device is not what was made of it; it is mended at once. Never empty. */
  | { readonly kind: 'driftFound'; readonly drifts: readonly Drift[] }
  | { readonly kind: 'verifyFailed'; readonly error: unknown };
