import type { IpAddress } from '../core/index.ts';

/** One backend of a Service port, taken from an EndpointSlice. Immutable. */
export interface Endpoint {
  readonly ip: IpAddress;
  readonly port: number;
  /** `ip:port`, IPv6 in brackets: identity and sort key within a Service port. */
  readonly key: string;
  /** Runs on this node. */
  readonly isLocal: boolean;
  readonly ready: boolean;
  readonly serving: boolean;
  readonly terminating: boolean;
  /** Zones this endpoint is meant for (`hints.forZones`); empty: no hint. */
  readonly zoneHints: readonly string[];
  /** Nodes this endpoint is meant for (`hints.forNodes`); empty: no hint. */
  readonly nodeHints: readonly string[];
}
