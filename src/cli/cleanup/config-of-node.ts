import { readFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { type KubeProxyConfig, readCommandLine } from '../../config/index.ts';
import { NodeplaneError } from '../../core/index.ts';
import { VERSION } from '../version.ts';

/** How the Node object of this machine is reached. */
export interface NodeFlags {
  readonly kubeconfig?: string;
  readonly hostnameOverride?: string;
}

/** As an agent with these flags has it; undefined without a kubeconfig. Throws ERR_CONFIG for flags that cannot be used. */
export function configOfNode({ kubeconfig, hostnameOverride = '' }: NodeFlags): KubeProxyConfig | undefined {
  if (kubeconfig === undefined) return undefined;
  const outcome = readCommandLine(['--kubeconfig', kubeconfig, '--hostname-override', hostnameOverride], {
    program: 'nodeplane agent',
    version: VERSION,
    readFile: (path) => readFileSync(path, 'utf8'),
    hostname: hostname(),
  });
  if (outcome.action === 'run') return outcome.config;
  const said = 'output' in outcome ? outcome.output.stderr.trim().replace(/\s*\n\s*/g, '; ') : outcome.action;
  throw new NodeplaneError('ERR_CONFIG', `Cannot use --kubeconfig and --hostname-override: ${said}`);
}
