import type { KubeProxyConfig } from '../config/index.ts';
import type { Clock } from '../core/index.ts';
import {
  type ApiClient,
  type ApiObserver,
  ApiSource,
  createApiClient,
  ManifestSource,
  mergeResources,
  type ObjectSource,
  type Resource,
} from '../kube/index.ts';
import { exec } from '../sys/index.ts';
import type { Logger } from './logger.ts';

export interface ClientOptions {
  readonly config: KubeProxyConfig;
  readonly clock: Clock;
  /** Told which server is talked to, and why. @default nobody */
  readonly logger?: Logger;
  /** Observes requests. */
  readonly observe: ApiObserver;
  readonly userAgent: string;
}

/**
 * The way to the API server; undefined when the objects come from a directory of manifests.
 *
 * @throws ERR_CONFIG when the kubeconfig or the pod's credentials cannot be read
 */
export async function createClient({
  config,
  clock,
  logger,
  observe,
  userAgent,
}: ClientOptions): Promise<ApiClient | undefined> {
  if (config.manifests !== '') return undefined;
  const { kubeconfig, master, qps, burst } = config.apiServer;
  return createApiClient({
    ...(kubeconfig !== '' && { kubeconfig }),
    ...(master !== '' && { master }),
    userAgent,
    clock,
    observe,
    rate: { qps, burst },
    runProgram: exec,
    chosen: ({ server, source, proxy }) =>
      logger?.info({ server: server.href, source, ...(proxy !== undefined && { proxy }) }, 'The API server'),
  });
}

export interface SourceOptions {
  readonly config: KubeProxyConfig;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Observes lists and watches. */
  readonly observe: ApiObserver;
  /** Undefined: the directory of manifests is read. */
  readonly client: ApiClient | undefined;
  /** What the parts want, the resources that others depend on first; one of the same name may be in it repeatedly. */
  readonly resources: readonly Resource[];
}

/** Where the agent's objects come from. */
export interface AgentSource {
  readonly source: ObjectSource;
  /** By resource, when the API server last said something about it (by the clock's `now`). */
  lastActivity(): ReadonlyMap<string, number>;
}

/** The source of all resources that the parts want. */
export function createSource({ config, clock, logger, observe, client, resources }: SourceOptions): AgentSource {
  const merged = mergeResources(resources);
  if (!client) {
    const source = new ManifestSource({
      folder: config.manifests,
      resources: merged,
      clock,
      debug: (message) => logger.debug(message),
    });
    return { source, lastActivity: () => new Map() };
  }
  const source = new ApiSource({ client, resources: merged, clock, observe });
  return { source, lastActivity: () => source.lastActivity() };
}
