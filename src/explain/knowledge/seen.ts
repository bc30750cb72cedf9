import type { IpProtocol } from '../../core/index.ts';

/** A flow that ended without a packet back. */
export interface SeenFlow {
  /** Since the kernel gave it up: TCP some 120 s after the last try, UDP 30 s. */
  readonly secondsAgo: number;
  readonly protocol: IpProtocol;
  readonly source: string;
  /** What was asked, before any translation. */
  readonly destination: string;
  readonly port: number;
  /** Who should have answered; null: it was not translated. */
  readonly endpoint: { readonly address: string; readonly port: number } | null;
}

/** Somebody else changed nf_tables. */
export interface SeenChange {
  /** The last time. */
  readonly secondsAgo: number;
  /** `firewalld (pid 812)` */
  readonly by: string;
  /** `added chain inet firewalld filter_FORWARD` */
  readonly what: string;
  /** What it changed: `inet firewalld filter_FORWARD`; a table alone where it was the table. */
  readonly places: readonly { readonly table: string; readonly name: string | null }[];
}

/** What the agent saw since its start, of what the kernel tells nobody afterwards. */
export interface SeenByAgent {
  /** The newest last. */
  readonly unanswered: readonly SeenFlow[];
  /** The newest last. */
  readonly changes: readonly SeenChange[];
  /** What it may have missed, in words. */
  readonly gaps: readonly string[];
}
