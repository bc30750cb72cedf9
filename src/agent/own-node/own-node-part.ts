import { NodeAnnouncer, nodeNamed, type ObjectEvent, type Resource } from '../../kube/index.ts';
import type { Part, PartContext } from '../part.ts';
import { logAnnouncerEvents, observeUnwritten } from './observe.ts';

/** Writes what other parts want our own Node object to say; the only one that does. */
export class OwnNodePart implements Part {
  readonly resources: readonly Resource[];
  readonly announcer: NodeAnnouncer;

  constructor({ client, config, clock, logger, registry }: Omit<PartContext, 'announcer'>) {
    const { nodeName } = config;
    this.resources = [nodeNamed(nodeName)];
    this.announcer = new NodeAnnouncer({ client, nodeName, clock, observe: logAnnouncerEvents(logger) });
    observeUnwritten(registry, this.announcer);
  }

  start(): void {}

  changed({ type, object }: ObjectEvent): void {
    if (object.kind !== 'Node') return;
    if (type === 'deleted') this.announcer.nodeRemoved(object.metadata.name);
    else this.announcer.nodeChanged(object);
  }

  async stop(): Promise<void> {
    await this.announcer.stop();
  }
}
