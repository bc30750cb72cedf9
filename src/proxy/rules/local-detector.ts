import { formatCidr, networkOf } from '../../core/index.ts';
import type { LocalDetector } from '../index.ts';
import type { RuleParts } from './rule.ts';

/** The matches that tell packets of this cluster's pods from others. */
export interface PodMatch {
  readonly fromPod: Pick<RuleParts, 'source' | 'inInterface'>;
  readonly notFromPod: Pick<RuleParts, 'source' | 'inInterface'>;
}

/** Undefined when pods cannot be told: the rules that need it are left out, as kube-proxy does. */
export function podMatch(detector: LocalDetector): PodMatch | undefined {
  switch (detector.kind) {
    case 'none':
      return undefined;
    case 'cidr': {
      const { address, prefixLength } = detector.cidr;
      // Everything would be a pod; iptables does not even keep such a match.
      if (prefixLength === 0) return undefined;
      const source = `-s ${formatCidr({ address: networkOf(address, prefixLength), prefixLength })}`;
      return { fromPod: { source }, notFromPod: { source: `! ${source}` } };
    }
    case 'bridge':
      return interfaceMatch(detector.interfaceName);
    case 'prefix':
      return interfaceMatch(`${detector.interfacePrefix}+`);
    default:
      return detector satisfies never;
  }
}

function interfaceMatch(name: string): PodMatch {
  const inInterface = `-i ${name}`;
  return { fromPod: { inInterface }, notFromPod: { inInterface: `! ${inInterface}` } };
}
