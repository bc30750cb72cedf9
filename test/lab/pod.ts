import { type Attachment, attach, type CniResult, type ConfList } from './cni-runtime.ts';
import { createHost, type Host } from './host.ts';
import type { TestNamespace } from './namespace.ts';

/** A namespace attached to a node by the CNI plugin. */
export interface Pod extends Host {
  /** What the plugin answered to ADD. */
  readonly cniResult: CniResult;
  /** Sends DEL while the namespace still exists, as a runtime does, then removes the namespace. */
  remove(): Promise<void>;
}

/** Attaches an empty namespace to a node. Throws what `attach` throws. */
export function createPod(name: string, namespace: TestNamespace, node: TestNamespace, conflist: ConfList): Pod {
  const attachment: Attachment = attach(node, namespace, conflist);
  const host = createHost({ name, namespace, ips: attachment.ips });
  return {
    ...host,
    cniResult: attachment.result,
    async remove() {
      attachment.detach();
      await host.remove();
    },
  };
}
