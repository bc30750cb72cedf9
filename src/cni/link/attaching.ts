import type { Netlink } from '../../netlink/index.ts';
import type { NetworkConfig } from '../config/config.ts';
import type { AttachmentKey } from '../protocol/attachment-key.ts';
import type { Environment } from '../protocol/environment.ts';
import type { NetworkHeader } from '../protocol/header.ts';
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
  /** A conversation about the namespace the plugin runs in. */
  readonly host: Netlink;
  readonly undo: UndoStack;
  readonly report: (message: string) => void;
}
