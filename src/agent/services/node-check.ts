import { checkFamilies, type KubeProxyConfig, type NodeFamilies } from '../../config/index.ts';
import { NodeplaneError } from '../../core/index.ts';
import type { Node } from '../../kube/index.ts';
import { type PreparedMode, podCidrsOf, primaryFamilyOf } from '../../proxy/index.ts';

/** What people should know about a mode and a node that fit together. */
export interface NodeAdvice {
  readonly advice: readonly string[];
  readonly warnings: readonly string[];
}

/**
 * Compares the mode that was found with the Node object and the configuration.
 *
 * @param node undefined: there is no Node object of this node's name
 * @throws ERR_CONFIG when Services cannot be served on this node in this way
 */
export function checkNode(config: KubeProxyConfig, prepared: PreparedMode, node: Node | undefined): NodeAdvice {
  const families = familiesOf(config, prepared, node);
  const { primary } = families;
  const isPrimaryKnown = node !== undefined || config.nodeIp !== undefined;
  if (isPrimaryKnown && !prepared.families.includes(primary)) {
    const reason = prepared.unserved.get(primary) ?? `this machine has no ${primary}`;
    const message = `Cannot serve ${primary}, the family of the node’s first address: ${reason}`;
    throw new NodeplaneError('ERR_CONFIG', message, { facts: { family: primary } });
  }
  const { fatal, advice, warnings } = checkFamilies(config, families);
  if (fatal.length > 0) {
    throw new NodeplaneError('ERR_CONFIG', `Cannot work with these settings: ${fatal.join('; ')}`);
  }
  return { advice, warnings };
}

/** The family of the node's first address is the primary one, unless --bind-address says otherwise. */
function familiesOf({ nodeIp }: KubeProxyConfig, { families }: PreparedMode, node: Node | undefined): NodeFamilies {
  const primary = nodeIp?.family ?? primaryFamilyOf(node);
  return { primary, dualStack: families.length === 2, podCidrs: podCidrsOf(node) };
}
