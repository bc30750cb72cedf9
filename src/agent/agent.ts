import { networkInterfaces } from 'node:os';
import { collectDefaultMetrics, Gauge, Registry } from 'prom-client';
import { type Clock, type IpAddress, systemClock, tryParseIp } from '../core/index.ts';
import { ManifestSource, type ObjectEvent, ObjectStore, type SourceProblem } from '../kube/index.ts';
import { changeOf, FamilyProxy, ProxyHealth, ProxyMetrics } from '../proxy/index.ts';
import { IptablesDataplane } from '../proxy/iptables/index.ts';
import { exec } from '../sys/index.ts';
import type { AgentConfig } from './config.ts';
import { type HttpAnswer, HttpServer, type Pages, textAnswer } from './http-server.ts';
import { createLogger, type Logger } from './logger.ts';
import { logProxyEvents, logSourceProblems } from './observe.ts';
import { isConntrackLiberal, preflight, type UsableFamilies } from './preflight.ts';

/** kube-proxy's: a sync is forced after this long without one. */
const MAX_SYNC_INTERVAL_MS = 3_600_000;
const FIRST_RETRY_MS = 1000;

/**
 * Runs the agent until SIGTERM or SIGINT. The rules stay in the kernel then: connections go on while the agent is
 * restarted or upgraded.
 *
 * @param version shown in the log and as a metric
 * @throws ERR_CONFIG or ERR_IPTABLES when the machine or the manifest folder cannot be used at all
 */
export async function runAgent(config: AgentConfig, version: string): Promise<void> {
  const logger = createLogger(config.logLevel);
  const stopped = new Promise<string>((resolve) => {
    for (const signal of ['SIGTERM', 'SIGINT'] as const) process.once(signal, () => resolve(signal));
  });
  logger.info(
    { version, node: config.nodeName, mode: config.proxyMode, manifests: config.manifests },
    'nodeplane starts',
  );
  const families = await preflight(config.iptablesVariant, exec, logger);
  const agent = new Agent(config, families, version, logger, systemClock);
  try {
    await agent.start();
  } catch (error) {
    await agent.stop();
    throw error;
  }
  const signal = await stopped;
  logger.info({ signal }, 'nodeplane stops; the rules stay in place');
  await agent.stop();
}

/** The parts of a running agent and how they hang together. Policy lives in the parts. */
class Agent {
  readonly #config: AgentConfig;
  readonly #logger: Logger;
  readonly #store = new ObjectStore();
  readonly #health: ProxyHealth;
  readonly #proxies: ReadonlyMap<string, FamilyProxy>;
  readonly #source: ManifestSource;
  readonly #servers: readonly HttpServer[];
  readonly #problems: Gauge;

  constructor(config: AgentConfig, families: UsableFamilies, version: string, logger: Logger, clock: Clock) {
    this.#config = config;
    this.#logger = logger;
    const registry = createRegistry(version);
    this.#problems = new Gauge({
      name: 'nodeplane_manifest_problems',
      help: 'Problems in manifests at the moment; the last good state of their files is in force.',
      registers: [registry],
    });
    const metrics = new ProxyMetrics(registry, config.proxyMode);
    this.#health = new ProxyHealth({ clock, timeoutMs: 2 * config.syncPeriodMs });
    const observers = [logProxyEvents(logger), metrics.observe, this.#health.observe];
    const dropInvalid = !isConntrackLiberal();
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
          settings: config,
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
    this.#source = new ManifestSource({ folder: config.manifests, clock, debug: (message) => logger.debug(message) });
    const server = (name: string, address: AgentConfig['healthzBindAddress'], pages: Pages) =>
      new HttpServer({ name, address, pages, clock, logger });
    this.#servers = [
      server('health server', config.healthzBindAddress, healthPages(this.#health, metrics)),
      server('metrics server', config.metricsBindAddress, metricsPages(registry, config)),
    ];
  }

  async start(): Promise<void> {
    for (const server of this.#servers) await server.start();
    const logProblems = logSourceProblems(this.#logger);
    await this.#source.start({
      event: (event) => this.#apply(event),
      synced: () => this.#synced(),
      problems: (problems: readonly SourceProblem[]) => {
        this.#problems.set(problems.length);
        logProblems(problems);
      },
    });
  }

  async stop(): Promise<void> {
    await this.#source.stop();
    for (const proxy of this.#proxies.values()) await proxy.stop();
    for (const server of this.#servers) await server.stop();
  }

  #apply(event: ObjectEvent): void {
    const touched = this.#store.apply(event);
    for (const [family, proxy] of this.#proxies) {
      const change = changeOf(event, family as 'IPv4' | 'IPv6');
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
    if (!node)
      this.#logger.warn(
        { node: this.#config.nodeName },
        'There is no Node object of this name: no pod addresses known',
      );
    this.#health.nodeChanged(node);
    for (const proxy of this.#proxies.values()) proxy.start();
  }
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

function metricsPages(registry: Registry, config: AgentConfig): Pages {
  return {
    '/healthz': () => textAnswer(200, 'ok'),
    '/proxyMode': () => textAnswer(200, config.proxyMode),
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
