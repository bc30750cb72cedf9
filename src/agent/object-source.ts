import type { Registry } from 'prom-client';
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
import { ApiLog } from './metrics/api-log.ts';
import { restClientObserver } from './metrics/rest-client-metrics.ts';

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
  const { kubeconfig, master, qps, burst, protobuf } = config.apiServer;
  return createApiClient({
    ...(kubeconfig !== '' && { kubeconfig }),
    ...(master !== '' && { master }),
    userAgent,
    clock,
    observe,
    rate: { qps, burst },
    protobuf,
    runProgram: exec,
    chosen: ({ server, source, proxy }) =>
      logger?.info(
        { server: server.href, source, ...(proxy !== undefined && { proxy }) },
        'Objects come from this API server',
      ),
  });
}

/** What the agent and the API server have to say to each other. */
export interface Conversation {
  /** Undefined when the objects come from a directory of manifests. */
  readonly client: ApiClient | undefined;
  /** To be told everything that happens between the two. */
  readonly observe: ApiObserver;
  readonly log: ApiLog;
}

/**
 * Opens the way to the API server, with log and metrics of what is said there.
 *
 * @throws ERR_CONFIG when the kubeconfig or the pod's credentials cannot be read
 */
export async function beginConversation(
  options: Omit<ClientOptions, 'observe'> & { readonly logger: Logger; readonly registry: Registry },
): Promise<Conversation> {
  const log = new ApiLog(options.logger, options.clock);
  const count = restClientObserver(options.registry);
  const observe: ApiObserver = (observation) => {
    log.observe(observation);
    if (observation.kind !== 'request') return;
    const { method: verb, host, code, seconds, watch } = observation;
    count({ verb, host, code, seconds: watch ? undefined : seconds });
  };
  return { client: await createClient({ ...options, observe }), observe, log };
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
  /** The same, and since the start where it was never heard of and cannot be read. */
  silentSince(): ReadonlyMap<string, number>;
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
    return { source, lastActivity: () => new Map(), silentSince: () => new Map() };
  }
  const source = new ApiSource({ client, resources: merged, clock, observe });
  return { source, lastActivity: () => source.lastActivity(), silentSince: () => source.silentSince() };
}
