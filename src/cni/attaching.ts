import type { Link, Netlink } from '../netlink/index.ts';
import type { AttachmentKey } from './attachment-key.ts';
import type { NetworkConfig } from './config.ts';
import type { Environment } from './environment.ts';
import type { PodFeatures } from './features/index.ts';
import type { NetworkHeader } from './header.ts';
import type { PodNamespace } from './pod-namespace.ts';
import type { UndoStack } from './undo.ts';

/** What an ADD has put into nftables for an attachment, and the link whose end is the end of that. */
export interface Attached {
  readonly hostLink: Pick<Link, 'name' | 'index'>;
  readonly features: PodFeatures;
}

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
  /** Told what the features wrote into nftables, if somebody wants to know. */
  readonly attached: ((attached: Attached) => void) | undefined;
}
