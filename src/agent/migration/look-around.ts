import type { KubeProxyConfig } from '../../config/index.ts';
import { readNode } from '../../preflight/index.ts';
import { type Exec, exec } from '../../sys/index.ts';
import { type FoundOnNode, lookAtNode } from './found.ts';

/** Of each program; a lock that is held makes them wait. */
const PATIENCE_MS = 10_000;

/** What this machine has, in the network namespace of the calling thread. */
export function lookAround(config: KubeProxyConfig): Promise<FoundOnNode> {
  const { iptablesVariant } = config;
  const impatient: Exec = (program, args, given) => exec(program, args, { ...given, timeoutMs: PATIENCE_MS });
  const variant = iptablesVariant === 'auto' ? undefined : iptablesVariant;
  return lookAtNode(readNode({ exec: impatient, variant }), config);
}
