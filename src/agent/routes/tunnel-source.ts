import { formatIp, type IpFamily, ipEquals } from '../../core/index.ts';
import type { Node } from '../../kube/index.ts';
import { nodeAddresses, type RouteObserver } from '../../routes/index.ts';
import type { Logger } from '../logger.ts';

/**
 * Warns when packets of the tunnel come from an address that the own Node object does not name, as with --routes-interface:
 * the other nodes drop them (RouteRules), and nothing on this one shows why.
 */
export class TunnelSource {
  readonly #logger: Logger;
  #node: Node | undefined;
  /** By family, the address last warned of. */
  readonly #told = new Map<IpFamily, string>();

  constructor(logger: Logger) {
    this.#logger = logger;
  }

  /** The own Node came or changed. */
  nodeChanged(node: Node): void {
    this.#node = node;
  }

  /** To be told of what the routes do. */
  readonly observe: RouteObserver = (event) => {
    if (event.kind !== 'synced' || !this.#node) return;
    const { family, own } = event;
    const isNamed = nodeAddresses(this.#node, family).some((address) => ipEquals(address, own.address));
    const text = formatIp(own.address);
    if (isNamed) this.#told.delete(family);
    else if (this.#told.get(family) !== text) {
      this.#told.set(family, text);
      this.#logger.warn(
        { family, address: text },
        "The tunnel's packets come from an address that the Node object of this machine does not name: other nodes drop them; give the kubelet this address (--node-ip), choose another --routes-interface, or announce it with --routes-flannel-annotations",
      );
    }
  };
}
