import type { KubeProxyConfig } from '../../config/index.ts';
import { NodeplaneError } from '../../core/index.ts';
import { readAgentFlags } from '../agent-flags.ts';

/** How the Node object of this machine is reached. */
export interface NodeFlags {
  readonly kubeconfig?: string;
  readonly hostnameOverride?: string;
}

/** As an agent with these flags has it; undefined without a kubeconfig. Throws ERR_CONFIG for flags that cannot be used. */
export function configOfNode({ kubeconfig, hostnameOverride = '' }: NodeFlags): KubeProxyConfig | undefined {
  if (kubeconfig === undefined) return undefined;
  const flags = readAgentFlags(['--kubeconfig', kubeconfig, '--hostname-override', hostnameOverride]);
  if (typeof flags !== 'string') return flags.config;
  throw new NodeplaneError('ERR_CONFIG', `Cannot use --kubeconfig and --hostname-override: ${flags}`);
}
