import type { KubeProxyConfig } from '../config/index.ts';
import type { Clock } from '../core/index.ts';
import {
  type ApiClient,
  type ApiObserver,
  ApiSource,
  createApiClient,
  ManifestSource,
  type ObjectSource,
} from '../kube/index.ts';
import { exec } from '../sys/index.ts';
import type { Logger } from './logger.ts';

/** Where the agent's objects come from, and the API server behind it if there is one. */
export interface AgentSource {
  readonly source: ObjectSource;
  readonly client: ApiClient | undefined;
  /** By resource, when the API server last said something about it (milliseconds since the epoch). */
  lastActivity(): ReadonlyMap<string, number>;
}

export interface SourceOptions {
  readonly config: KubeProxyConfig;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Told about requests, lists and watches. */
  readonly observe: ApiObserver;
  readonly userAgent: string;
}

/**
 * A directory of manifests if one is named, else the API server.
 *
 * @throws ERR_CONFIG when the kubeconfig or the pod's credentials cannot be read
 */
export async function createSource({ config, clock, logger, observe, userAgent }: SourceOptions): Promise<AgentSource> {
  if (config.manifests !== '') {
    const source = new ManifestSource({ folder: config.manifests, clock, debug: (message) => logger.debug(message) });
    return { source, client: undefined, lastActivity: () => new Map() };
  }
  const { kubeconfig, master, qps, burst } = config.apiServer;
  const client = await createApiClient({
    ...(kubeconfig !== '' && { kubeconfig }),
    ...(master !== '' && { master }),
    userAgent,
    clock,
    observe,
    rate: { qps, burst },
    runProgram: exec,
  });
  const { nodeName, serviceProxyName } = config;
  const source = new ApiSource({
    client,
    nodeName,
    clock,
    observe,
    ...(serviceProxyName !== '' && { serviceProxyName }),
  });
  return { source, client, lastActivity: () => source.lastActivity() };
}
