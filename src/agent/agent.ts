import { Gauge, Registry } from 'prom-client';
import { KUBERNETES_VERSION, type KubeProxyConfig, type Program } from '../config/index.ts';
import { type Clock, errorText, type IpFamily, inBackground, stopAll } from '../core/index.ts';
import {
  type ApiClient,
  type ApiObserver,
  EventRecorder,
  type ObjectEvent,
  type SourceProblem,
} from '../kube/index.ts';
import type { BackgroundFailures } from './background-failures.ts';
import { CniPart } from './cni/cni-part.ts';
import { AgentServers } from './http/agent-servers.ts';
import type { Pages } from './http/http-server.ts';
import type { Logger } from './logger.ts';
import { ClusterVersion } from './metrics/cluster-version.ts';
import { type Build, registerComponentMetrics } from './metrics/component-metrics.ts';
import { nodeplaneMetrics } from './metrics/nodeplane-metrics.ts';
import { logApiEvents, logSourceProblems } from './metrics/observe.ts';
import { restClientObserver } from './metrics/rest-client-metrics.ts';
import { type AgentSource, createClient, createSource } from './object-source.ts';
import type { Part, PartContext } from './part.ts';
import { PoolsPart } from './pools/pools-part.ts';
import { RoutesPart } from './routes/routes-part.ts';
import { ServicesPart } from './services/services-part.ts';
import type { StatusSources } from './status/collect/collect.ts';
import { StatusRecorder } from './status/collect/recorder.ts';
import { StatusPart } from './status/status-part.ts';

/** The name kube-proxy goes by in Events and pages, which tools look for. */
const COMPONENT = 'kube-proxy';

/** How long an Event about why the agent ends may take. */
const LAST_WORDS_MS = 2000;

/** What an agent is made of. */
export interface AgentOptions {
  readonly program: Program;
  readonly config: KubeProxyConfig;
  /** Every flag with its value as text. */
  readonly flags: Readonly<Record<string, string>>;
  readonly build: Build;
  readonly logger: Logger;
  readonly clock: Clock;
  readonly failures: BackgroundFailures;
  /** The families this machine has. */
  readonly machineFamilies: readonly IpFamily[];
  /** Called when a part cannot do its work and the agent is to end. */
  readonly unusable: (error: Error) => void;
}

/** The parts of a running agent, and what they share: the objects, the HTTP ports, the Events. Policy lives in the parts. */
export class Agent {
  readonly #options: AgentOptions;
  readonly #client: ApiClient | undefined;
  readonly #source: AgentSource;
  readonly #recorder: EventRecorder | undefined;
  /** In the order of their start; they are stopped in the opposite one. */
  readonly #parts: readonly Part[];
  /** The parts that hear of objects: all but those that were asked to stop. */
  readonly #listening: Set<Part>;
  readonly #servers: AgentServers;
  readonly #status: StatusPart;
  readonly #problems: Gauge;
  /** Undefined without an API server to follow. */
  readonly #clusterVersion: ClusterVersion | undefined;
  readonly #stopping = new AbortController();

  /** @throws ERR_CONFIG when the API server's credentials cannot be read, or a part cannot be made as configured */
  static async create(options: AgentOptions): Promise<Agent> {
    const { config, clock, logger, build } = options;
    const userAgent = `${COMPONENT}/nodeplane-${build.version}`;
    const registry = new Registry();
    const log = logApiEvents(logger);
    const count = restClientObserver(registry);
    const observe: ApiObserver = (observation) => {
      log(observation);
      if (observation.kind === 'request') {
        const { method: verb, host, code, seconds, watch } = observation;
        count({ verb, host, code, seconds: watch ? undefined : seconds });
      }
    };
    const client = await createClient({ config, clock, observe, userAgent });
    return new Agent(options, registry, client, observe);
  }

  private constructor(options: AgentOptions, registry: Registry, client: ApiClient | undefined, observe: ApiObserver) {
    const { config, build, logger, clock, failures, machineFamilies } = options;
    const { mode, nodeName } = config;
    this.#options = options;
    this.#client = client;
    this.#recorder = client && new EventRecorder({ client, controller: COMPONENT, nodeName, clock });
    this.#problems = new Gauge({
      name: 'nodeplane_object_problems',
      help: 'Objects that cannot be read at the moment; their last good state is in force.',
      registers: [registry],
    });
    const showVersion = registerComponentMetrics({
      registry,
      features: config.featureGates,
      build: { ...build, kubernetesVersion: config.reportedVersion },
    });
    // What --version says is said on purpose.
    if (client && config.reportedVersion === KUBERNETES_VERSION) {
      this.#clusterVersion = new ClusterVersion({ client, clock, logger, changed: showVersion });
    }
    failures.register(registry);
    const watchAges = () =>
      [...this.#source.lastActivity()].map(([name, at]) => [name, (clock.now() - at) / 1000] as const);
    const { version } = build;
    const recorder = new StatusRecorder(clock);
    const metricsOfOurs = nodeplaneMetrics({ registry, version, mode, ...(client && { watchAges }) });
    const observers = [failures.observe, metricsOfOurs, recorder.observe];
    const context: PartContext = {
      config,
      registry,
      clock,
      logger,
      client,
      recorder: this.#recorder,
      stopping: this.#stopping.signal,
      unusable: options.unusable,
    };
    const services = new ServicesPart({ context, machineFamilies, observers });
    const parts: Part[] = [services];
    let addresses: StatusSources['addresses'];
    let waysToNodes: StatusSources['routes'];
    if (config.routes || config.cni) {
      // Hears of objects before those that ask it.
      const pools = new PoolsPart(context, observe);
      parts.push(pools);
      addresses = () => pools.addresses();
      const routes = config.routes && new RoutesPart(config.routes, context, machineFamilies, pools);
      if (routes) parts.push(routes);
      waysToNodes = routes && { mode: config.routes.mode, standing: () => routes.standing() };
      if (config.cni) parts.push(new CniPart(config.cni, context, pools, routes));
    }
    this.#status = new StatusPart({
      node: nodeName,
      version,
      mode,
      clock,
      recorder,
      families: () => services.planned(),
      healthy: () => services.health.isHealthy(),
      api:
        client &&
        (() => ({
          server: client.server.href,
          watches: watchAges().map(([resource, seconds]) => ({ resource, seconds })),
        })),
      manifests: config.manifests,
      routes: waysToNodes,
      addresses,
    });
    parts.push(this.#status);
    this.#parts = parts;
    this.#listening = new Set(this.#parts);
    const resources = this.#parts.flatMap((part) => part.resources ?? []);
    const observeAll: ApiObserver = (observation) => {
      observe(observation);
      this.#clusterVersion?.observe(observation);
    };
    this.#source = createSource({ config, clock, logger, observe: observeAll, client, resources });
    const { health, metrics } = services;
    const countAnswer = metrics.countHealthAnswer.bind(metrics);
    const pages: Pages = Object.assign({}, ...this.#parts.map((part) => part.pages));
    const readiness = () => this.#parts.flatMap((part) => part.readiness?.() ?? []);
    const shown = { registry, health, countAnswer, readiness, pages, statusPages: this.#status.openPages };
    this.#servers = new AgentServers({ ...options, component: COMPONENT, ...shown });
  }

  /** @throws ERR_CONFIG when a port cannot be listened on and that is fatal, or the folder of manifests cannot be read */
  async start(): Promise<void> {
    const { config, logger } = this.#options;
    const node = { kind: 'Node', name: config.nodeName, namespace: '' } as const;
    const action = 'StartKubeProxy';
    await this.#servers.start(async (reason, error) => {
      this.#recorder?.record(node, { type: 'Warning', reason, action, note: errorText(error) });
      await this.#recorder?.drain(LAST_WORDS_MS);
    });
    for (const part of this.#parts) await part.start();
    this.#recorder?.record(node, { type: 'Normal', reason: 'Starting', action, note: '' });
    const logProblems = logSourceProblems(logger);
    await this.#source.source.start({
      event: (event) => this.#changed(event),
      synced: () => {
        for (const part of this.#listening) part.synced?.();
      },
      problems: (problems: readonly SourceProblem[]) => {
        this.#problems.set(problems.length);
        this.#status.objectProblems(problems);
        logProblems(problems);
      },
    });
    this.#clusterVersion?.start();
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    this.#listening.clear();
    this.#clusterVersion?.stop();
    await stopAll([...this.#parts.toReversed(), this.#source.source, this.#servers]);
    this.#recorder?.stop();
    this.#client?.close();
  }

  /** What one object leads to in one part must not keep the others from being taken in. */
  #changed(event: ObjectEvent): void {
    for (const part of this.#listening) inBackground('object', () => part.changed?.(event));
  }
}
