import type { Step } from '../../walk/index.ts';
import type { Asked } from '../asked.ts';
import { showing } from '../place.ts';
import type { Finding } from '../report.ts';

/** Of the CNI plugin: src/cni/features/tables/pod-chains.ts. */
const INGRESS = { table: 'nodeplane-cni', chain: 'ingress-policy' } as const;
/** Of routes to other nodes, one chain for each family: src/routes/rules/encryption-chains.ts. */
const ENCRYPTED = { table: 'nodeplane-routes', chain: /^encrypted-only-/ } as const;

const OPEN = 'set "ingressPolicy" to "open" in the CNI configuration of either; make its pod anew';

/** Whether a rule of ours drops packets because that is what was configured. What drops packets of Services is compared with the plan. */
export function isOwnPolicy(step: Step): boolean {
  return isIngressPolicy(step) || isEncryptedOnly(step);
}

/**
 * What is said of packets that such a rule drops; undefined: it is none.
 *
 * @param text which rule drops what, in words
 */
export function byOwnPolicy(step: Step, text: string, { commands }: Asked['knowledge']): Finding | undefined {
  if (isIngressPolicy(step)) {
    const why = 'ingressPolicy of the CNI configuration keeps these pods apart';
    return {
      code: 'ingress-policy',
      text: `${why}: ${text}`,
      remedy: [OPEN, showing(step)],
    };
  }
  if (!isEncryptedOnly(step)) return undefined;
  const why =
    'pods of other nodes are reached through WireGuard or not at all, and the route there does not lead into it';
  return { code: 'no-peer-route', text: `${why}: ${text}`, remedy: [commands.routes, showing(step)] };
}

function isIngressPolicy({ chain, source }: Step): boolean {
  return source === 'nftables' && chain.table === INGRESS.table && chain.name === INGRESS.chain;
}

function isEncryptedOnly({ chain, source }: Step): boolean {
  return source === 'nftables' && chain.table === ENCRYPTED.table && ENCRYPTED.chain.test(chain.name);
}
