import type { Netlink } from '../../netlink/index.ts';
import type { Link } from '../../netlink/route/index.ts';
import type { NetworkConfig } from '../config/network-config.ts';
import type { AttachmentKey } from '../protocol/attachment-key.ts';
import type { Environment } from '../protocol/environment.ts';
import type { NetworkHeader } from '../protocol/header.ts';
import type { HostLink } from './host-link.ts';
import type { PodNamespace } from './pod-namespace.ts';
import type { UndoStack } from './undo.ts';

/** What the steps of one ADD share. */
export interface Attaching {
  readonly config: NetworkConfig;
  /** The same as it came, for plugins that this one runs. */
  readonly header: NetworkHeader;
  readonly env: Environment;
  readonly key: AttachmentKey;
  readonly pod: PodNamespace;
  /** A NETLINK_ROUTE socket of the namespace the plugin runs in. */
  readonly host: Netlink;
  readonly undo: UndoStack;
  readonly warn: (message: string) => void;
}

/** What an attachment is connected to, on the host. */
export interface Connection {
  readonly hostLink: HostLink;
  /** Undefined in mode `routed`. */
  readonly bridge: Link | undefined;
  /** The link with the gateways' addresses: the bridge, or the one of the VLAN; undefined in mode `routed`. */
  readonly gateway: Link | undefined;
}
