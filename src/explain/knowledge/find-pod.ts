import type { Steps } from '../../core/index.ts';
import type { ServiceStore } from '../../proxy/index.ts';
import { nearMisses } from '../question/index.ts';
import type { KnownPod } from './knowledge.ts';

/** Names that are compared with the wanted one, letter by letter, when there is no such pod. */
const MOST_COMPARED = 5000;

/**
 * Finds a pod of any node by its name, among the endpoints of all Services that are served here: pods themselves are not
 * known. In steps, one for each Service.
 */
export function* findPod(
  store: ServiceStore,
  { namespace, name }: { readonly namespace: string; readonly name: string },
): Steps<KnownPod> {
  const wanted = `${namespace}/${name}`;
  const addresses = new Set<string>();
  const others = new Set<string>();
  let node: string | null = null;
  for (const service of [...store.serviceNames()]) {
    const own = service.slice(0, service.indexOf('/'));
    for (const { addressType, endpoints = [] } of store.slices(service)) {
      for (const { targetRef, addresses: [address] = [], nodeName } of endpoints) {
        if (targetRef === undefined || address === undefined || addressType === 'FQDN') continue;
        if (own === namespace && targetRef === name) {
          addresses.add(address);
          node ??= nodeName ?? null;
        } else if ((own === namespace || targetRef === name) && others.size < MOST_COMPARED) {
          others.add(`${own}/${targetRef}`);
        }
      }
    }
    yield;
  }
  return {
    name: wanted,
    addresses: [...addresses],
    node,
    near: addresses.size > 0 ? [] : yield* nearMisses(wanted, others),
  };
}
