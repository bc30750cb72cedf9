import { networkInterfaces } from 'node:os';
import { collectDefaultMetrics, Gauge, Registry } from 'prom-client';
import type { KubeProxyConfig } from '../config/index.ts';
import { type Clock, type IpAddress, type IpFamily, tryParseIp } from '../core/index.ts';
import { type ObjectEvent, ObjectStore, type SourceProblem } from '../kube/index.ts';
import { changeOf, FamilyProxy, type NodeSettings, ProxyHealth, ProxyMetrics } from '../proxy/index.ts';
import { IptablesDataplane } from '../proxy/iptables/index.ts';
import { exec } from '../sys/index.ts';
import { type HttpAnswer, HttpServer, type Pages, textAnswer } from './http-server.ts';
import type { Logger } from './logger.ts';
import { type AgentSource, createSource } from './object-source.ts';
import { logApiEvents, logProxyEvents, logSourceProblems } from './observe.ts';
import { isConntrackLiberal, type UsableFamilies } from './preflight.ts';

/** kube-proxy's: a sync is forced after this long without one. */
const MAX_SYNC_INTERVAL_MS = 3_600_000;
const FIRST_RETRY_MS = 1000;

/** What an agent is made of. */
export interface AgentOptions {
  readonly config: KubeProxyConfig;
  readonly families: UsableFamilies;
  /** Of nodeplane. */
  readonly version: string;
  readonly logger: Logger;
  readonly clock: Clock;
}

/** The parts of a running agent and how they hang together. Policy lives in the parts. */
export class Agent {
  readonly #config: KubeProxyConfig;
  readonly #logger: Logger;
  readonly #source: AgentSource;
  readonly #store: ObjectStore;
  readonly #health: ProxyHealth;
  readonly #proxies: ReadonlyMap<IpFamily, FamilyProxy>;
  readonly #servers: readonly HttpServer[];
  readonly #problems: Gauge;

  /** @throws ERR_CONFIG when the API server's credentials cannot be read */
  static async create(options: AgentOptions): Promise<Agent> {
    const { config, clock, logger, version } = options;
    const observe = logApiEvents(logger);
    const source = await createSource({ config, clock, logger, observe, userAgent: `nodeplane/${version}` });
    return new Agent(options, source);
  }

  private constructor({ config, families, version, logger, clock }: AgentOptions, source: AgentSource) {
    this.#config = config;
    this.#logger = logger;
    this.#source = source;
    this.#store = new ObjectStore(config.serviceProxyName);
    const registry = createRegistry(version);
    this.#problems = new Gauge({
      name: 'nodeplane_object_problems',
      help: 'Objects that cannot be read at the moment; their last good state is in force.',
      registers: [registry],
    });
    const metrics = new ProxyMetrics(registry, config.mode);
    this.#health = new ProxyHealth({ clock, timeoutMs: 2 * config.syncPeriodMs });
    const observers = [logProxyEvents(logger), metrics.observe, this.#health.observe];
    const dropInvalid = !isConntrackLiberal();
    const settings = nodeSettings(config);
    this.#proxies = new Map(
      [...families].map(([family, { variant, reason, otherHoldsServices }]) => {
        logger.info({ family, variant, reason }, 'iptables variant chosen');
        if (otherHoldsServices) {
          logger.warn(
            { family },
            'The other iptables variant holds a service proxy’s rules too; remove them with "nodeplane cleanup"',
          );
        }
        const proxy = new FamilyProxy({
          clock,
          nodeName: config.nodeName,
          settings,
          store: this.#store,
          dataplane: new IptablesDataplane({ family, variant, exec, dropInvalid }),
          localAddresses,
          observers,
          minIntervalMs: config.minSyncPeriodMs,
          maxIntervalMs: MAX_SYNC_INTERVAL_MS,
          retry: { firstMs: FIRST_RETRY_MS, maxMs: config.syncPeriodMs },
        });
        return [family, proxy];
      }),
    );
    const server = (name: string, address: KubeProxyConfig['metricsBindAddress'], pages: Pages) =>
      new HttpServer({ name, address, pages, clock, logger });
    this.#servers = [
      ...(config.healthzBindAddress
        ? [server('health server', config.healthzBindAddress, healthPages(this.#health, metrics))]
        : []),
      server('metrics server', config.metricsBindAddress, metricsPages(registry, config)),
    ];
  }

  async start(): Promise<void> {
    for (const server of this.#servers) await server.start();
    const logProblems = logSourceProblems(this.#logger);
    await this.#source.source.start({
      event: (event) => this.#apply(event),
      synced: () => this.#synced(),
      problems: (problems: readonly SourceProblem[]) => {
        this.#problems.set(problems.length);
        logProblems(problems);
      },
    });
  }

  async stop(): Promise<void> {
    await this.#source.source.stop();
    for (const proxy of this.#proxies.values()) await proxy.stop();
    for (const server of this.#servers) await server.stop();
    this.#source.client?.close();
  }

  #apply(event: ObjectEvent): void {
    const touched = this.#store.apply(event);
    for (const [family, proxy] of this.#proxies) {
      const change = changeOf(event, family);
      if (change && touched.services.length > 0) proxy.touch(touched.services, change);
    }
    if (touched.node === this.#config.nodeName) this.#nodeChanged();
  }

  #nodeChanged(): void {
    this.#health.nodeChanged(this.#store.node(this.#config.nodeName));
    for (const proxy of this.#proxies.values()) proxy.nodeChanged();
  }

  #synced(): void {
    const node = this.#store.node(this.#config.nodeName);
    if (!node) this.#logger.warn({ node: this.#config.nodeName }, 'There is no Node object of this name');
    this.#health.nodeChanged(node);
    for (const proxy of this.#proxies.values()) proxy.start();
  }
}

/** Without a cluster there is no cluster CIDR to be told: the Node's manifest says what is a pod. */
function nodeSettings(config: KubeProxyConfig): NodeSettings {
  const { detectLocal, manifests } = config;
  const untold = detectLocal.mode === 'ClusterCIDR' && detectLocal.cidrs.length === 0;
  return { ...config, detectLocal: manifests !== '' && untold ? { mode: 'NodeCIDR' } : detectLocal };
}

function createRegistry(version: string): Registry {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  new Gauge({
    name: 'nodeplane_build_info',
    help: 'Always 1; the labels say what runs.',
    labelNames: ['version', 'node_version'],
    registers: [registry],
  }).set({ version, node_version: process.version }, 1);
  return registry;
}

function healthPages(health: ProxyHealth, metrics: ProxyMetrics): Pages {
  const page = (path: 'healthz' | 'livez') => (): HttpAnswer => {
    const answer = health[path]();
    metrics.countHealthAnswer(path, answer.status);
    return answer;
  };
  return { '/healthz': page('healthz'), '/livez': page('livez') };
}

function metricsPages(registry: Registry, config: KubeProxyConfig): Pages {
  return {
    '/healthz': () => textAnswer(200, 'ok'),
    '/proxyMode': () => textAnswer(200, config.mode),
    '/metrics': async () => ({
      status: 200,
      headers: { 'Content-Type': registry.contentType },
      body: await registry.metrics(),
    }),
  };
}

/** The addresses on this machine's interfaces, link-local ones included. */
function localAddresses(): IpAddress[] {
  return Object.values(networkInterfaces()).flatMap((addresses) =>
    (addresses ?? []).flatMap(({ address }) => tryParseIp(address) ?? []),
  );
}
