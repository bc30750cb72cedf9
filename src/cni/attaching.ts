import type { Netlink } from '../netlink/index.ts';
import type { AttachmentKey } from './attachment-key.ts';
import type { NetworkConfig } from './config.ts';
import type { Environment } from './environment.ts';
import type { NetworkHeader } from './header.ts';
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
