import type { Netlink } from '../../netlink/index.ts';
import type { NetworkConfig } from '../config/network-config.ts';
import type { AttachmentKey } from '../protocol/attachment-key.ts';
import type { CniResult, ResultIp } from '../protocol/result.ts';
import type { PodNamespace } from './pod-namespace.ts';

/** What the parts of one CHECK share. */
export interface Checking {
  readonly config: NetworkConfig;
  readonly key: AttachmentKey;
  readonly pod: PodNamespace;
  /** A NETLINK_ROUTE socket of the namespace the plugin runs in. */
  readonly host: Netlink;
  /** The result of the ADD. */
  readonly previous: CniResult;
  /** The addresses of `previous` that belong to this interface. */
  readonly ips: readonly ResultIp[];
  /** Takes a sentence about something that is not as ADD made it. */
  readonly differ: (what: string) => void;
}
