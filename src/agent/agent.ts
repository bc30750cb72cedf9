import { Gauge, Registry } from 'prom-client';
import {
  checkFamilies,
  isEnabled,
  type KubeProxyConfig,
  type NodeFamilies,
  type Program,
  writeConfigz,
} from '../config/index.ts';
import {
  type Clock,
  errorText,
  type IpAddress,
  type IpFamily,
  inBackground,
  NodeplaneError,
  tryParseIp,
} from '../core/index.ts';
import { EventRecorder, type Node, type ObjectEvent, ObjectStore, type SourceProblem } from '../kube/index.ts';
import { changeOf, type PreparedMode, ProxyHealth, ProxyMetrics, podCidrsOf, primaryFamilyOf } from '../proxy/index.ts';
import { exec } from '../sys/index.ts';
import type { BackgroundFailures } from './background-failures.ts';
import { CniPart } from './cni/cni-part.ts';
import { registerConnectionMetrics } from './http/http-connections.ts';
import { httpConnections } from './http/http-listener.ts';
import { HttpServer, type Pages } from './http/http-server.ts';
import { healthPages, metricsPages } from './http/pages.ts';
import { Profiler } from './http/profiler.ts';
import type { Logger } from './logger.ts';
import { type Build, registerComponentMetrics } from './metrics/component-metrics.ts';
import { nodeplaneMetrics } from './metrics/nodeplane-metrics.ts';
import { logApiEvents, logProxyEvents, logSourceProblems, recordProxyEvents } from './metrics/observe.ts';
import { restClientObserver } from './metrics/rest-client-metrics.ts';
import { flowMetrics } from './services/conntrack/flow-metrics.ts';
import { createFamily, type Family } from './services/family.ts';
import { MODES } from './services/modes/modes.ts';
import { removeOtherModes } from './services/modes/remove-others.ts';
import { type AgentSource, createSource } from './services/object-source.ts';

/** The name kube-proxy goes by in Events and pages, which tools look for. */
const COMPONENT = 'kube-proxy';

/** How long an Event about why the agent ends may take. */
const LAST_WORDS_MS = 2000;

/** A server, and the reason kube-proxy gives in its Event when it cannot listen and that is fatal. */
interface NamedServer {
  readonly server: HttpServer;
  readonly failure: string;
}

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
}

/** The parts of a running agent and how they hang together. Policy lives in the parts. */
export class Agent {
  readonly #config: KubeProxyConfig;
  readonly #logger: Logger;
  readonly #source: AgentSource;
  readonly #recorder: EventRecorder | undefined;
  readonly #store: ObjectStore;
  readonly #health: ProxyHealth;
  /** Empty until the proxy's way into the kernel is known. */
  #families: ReadonlyMap<IpFamily, Family> = new Map();
  readonly #makeFamilies: (prepared: PreparedMode) => ReadonlyMap<IpFamily, Family>;
  readonly #servers: readonly NamedServer[];
  readonly #profiler: Profiler | undefined;
  readonly #problems: Gauge;
  /** Undefined: the pods' network is somebody else's. */
  readonly #cni: CniPart | undefined;
  /** Resolves when all objects were read once, or the agent stops. */
  readonly #known: Promise<void>;
  #objectsKnown: () => void = () => {};
  readonly #stopping = new AbortController();

  /** @throws ERR_CONFIG when the API server's credentials cannot be read */
  static async create(options: AgentOptions): Promise<Agent> {
    const { config, clock, logger, build } = options;
    const registry = new Registry();
    const log = logApiEvents(logger);
    const count = restClientObserver(registry);
    const source = await createSource({
      config,
      clock,
      logger,
      userAgent: `${COMPONENT}/nodeplane-${build.version}`,
      observe(observation) {
        log(observation);
        if (observation.kind === 'request') {
          const { method: verb, host, code, seconds, watch } = observation;
          count({ verb, host, code, seconds: watch ? undefined : seconds });
        }
      },
    });
    return new Agent(options, source, registry);
  }

  private constructor(options: AgentOptions, source: AgentSource, registry: Registry) {
    const { config, build, logger, clock } = options;
    const { version } = build;
    const { mode, nodeName } = config;
    this.#known = new Promise((resolve) => {
      this.#objectsKnown = resolve;
    });
    this.#config = config;
    this.#logger = logger;
    this.#source = source;
    const { client } = source;
    this.#recorder = client && new EventRecorder({ client, controller: COMPONENT, nodeName, clock });
    this.#store = new ObjectStore(config.serviceProxyName);
    this.#problems = new Gauge({
      name: 'nodeplane_object_problems',
      help: 'Objects that cannot be read at the moment; their last good state is in force.',
      registers: [registry],
    });
    registerComponentMetrics({
      registry,
      features: config.featureGates,
      build: { ...build, kubernetesVersion: config.reportedVersion },
    });
    options.failures.register(registry);
    const metrics = new ProxyMetrics(registry, MODES[mode].metrics);
    this.#health = new ProxyHealth({ clock, timeoutMs: 2 * config.syncPeriodMs });
    // Load balancers wait until the node is known and so are its Services.
    this.#health.nodeChanged(undefined);
    this.#health.setPrepared(false);
    const watchAges = () => [...source.lastActivity()].map(([name, at]) => [name, (clock.now() - at) / 1000] as const);
    const observers = [
      logProxyEvents(logger),
      options.failures.observe,
      nodeplaneMetrics({
        registry,
        version,
        mode,
        ...(client && { watchAges }),
      }),
      metrics.observe,
      this.#health.observe,
      ...(this.#recorder ? [recordProxyEvents(this.#recorder)] : []),
    ];
    const countCleaning = flowMetrics(registry, logger);
    const { excludeCidrs } = config.ipvs;
    const removal = { mode, exec, clock, logger, excludeCidrs, signal: this.#stopping.signal };
    this.#makeFamilies = (prepared) => {
      const createDataplane = prepared.begin(registry);
      return new Map(
        prepared.families.map((family) => [
          family,
          createFamily({
            config,
            family,
            createDataplane,
            clock,
            logger,
            observers,

            store: this.#store,
            health: this.#health,
            recorder: this.#recorder,
            cleaned: countCleaning,
            apiServer: () => client && addressOfServer(client.server),
            standing: () => inBackground('removal of other modes', () => removeOtherModes({ ...removal, family })),
          }),
        ]),
      );
    };
    this.#profiler = config.profiling ? new Profiler(clock) : undefined;
    this.#servers = servers(options, registry, this.#health, metrics, this.#profiler);
    const podCidrs = () => podCidrsOf(this.#store.node(nodeName));
    this.#cni = config.cni && new CniPart({ settings: config.cni, registry, clock, logger, podCidrs });
  }

  async start(): Promise<void> {
    await this.#profiler?.start();
    const node = { kind: 'Node', name: this.#config.nodeName, namespace: '' } as const;
    for (const { server, failure } of this.#servers) {
      try {
        await server.start();
      } catch (error) {
        const event = { type: 'Warning', reason: failure, action: 'StartKubeProxy', note: errorText(error) } as const;
        this.#recorder?.record(node, event);
        await this.#recorder?.drain(LAST_WORDS_MS);
        throw error;
      }
    }
    await this.#cni?.start();
    this.#recorder?.record(node, { type: 'Normal', reason: 'Starting', action: 'StartKubeProxy', note: '' });
    const logProblems = logSourceProblems(this.#logger);
    await this.#source.source.start({
      // What one object leads to must not keep the others from being taken in.
      event: (event) => inBackground('object', () => this.#apply(event)),
      synced: () => this.#synced(),
      problems: (problems: readonly SourceProblem[]) => {
        this.#problems.set(problems.length);
        logProblems(problems);
      },
    });
  }

  /**
   * Waits until the objects are known, then looks whether the proxy can do its work on this node in the way that was found.
   *
   * @throws ERR_CONFIG when it cannot
   */
  async check(prepared: PreparedMode): Promise<void> {
    await this.#known;
    const node = this.#store.node(this.#config.nodeName);
    const families = this.#nodeFamilies(node, prepared);
    const { primary } = families;
    const isPrimaryKnown = node !== undefined || this.#config.nodeIp !== undefined;
    if (isPrimaryKnown && !prepared.families.includes(primary)) {
      const reason = prepared.unserved.get(primary) ?? `this machine has no ${primary}`;
      const message = `Cannot serve ${primary}, the family of the node’s first address: ${reason}`;
      throw new NodeplaneError('ERR_CONFIG', message, { facts: { family: primary } });
    }
    const { fatal } = checkFamilies(this.#config, families);
    if (fatal.length > 0) {
      throw new NodeplaneError('ERR_CONFIG', `Cannot work with these settings: ${fatal.join('; ')}`);
    }
  }

  /** Begins to write rules, in a way that passed `check`. */
  serve(prepared: PreparedMode): void {
    if (this.#stopping.signal.aborted) return;
    const node = this.#store.node(this.#config.nodeName);
    const { advice, warnings } = checkFamilies(this.#config, this.#nodeFamilies(node, prepared));
    for (const text of advice) this.#logger.info(text);
    for (const warning of warnings) this.#logger.warn(warning);
    this.#families = this.#makeFamilies(prepared);
    this.#health.setPrepared(true);
    for (const { proxy } of this.#families.values()) proxy.start();
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    this.#objectsKnown();
    await this.#cni?.stop();
    await this.#source.source.stop();
    for (const family of this.#families.values()) await family.stop();
    for (const { server } of this.#servers) await server.stop();
    this.#profiler?.stop();
    this.#recorder?.stop();
    this.#source.client?.close();
  }

  #apply(event: ObjectEvent): void {
    const touched = this.#store.apply(event);
    for (const [family, { proxy }] of this.#families) {
      const change = changeOf(event, family);
      if (change && touched.services.length > 0) proxy.touch(touched.services, change);
    }
    if (touched.node === this.#config.nodeName || touched.serviceCidrs) this.#nodeChanged();
    else if (touched.node !== undefined) {
      for (const { proxy } of this.#families.values()) proxy.addressesChanged();
    }
  }

  #nodeChanged(): void {
    this.#health.nodeChanged(this.#store.node(this.#config.nodeName));
    for (const { proxy } of this.#families.values()) proxy.nodeChanged();
    this.#cni?.nodeChanged();
  }

  #synced(): void {
    const node = this.#store.node(this.#config.nodeName);
    if (!node) this.#logger.warn({ node: this.#config.nodeName }, 'There is no Node object of this name');
    this.#health.nodeChanged(node);
    this.#objectsKnown();
    this.#cni?.nodeChanged();
  }

  /** The family of the node's first address is the primary one, unless --bind-address says otherwise. */
  #nodeFamilies(node: Node | undefined, { families }: PreparedMode): NodeFamilies {
    const { nodeIp } = this.#config;
    const primary = nodeIp?.family ?? primaryFamilyOf(node);
    return { primary, dualStack: families.length === 2, podCidrs: podCidrsOf(node) };
  }
}

/** Undefined: it is reached by a name. */
function addressOfServer({ hostname }: URL): IpAddress | undefined {
  return tryParseIp(hostname.replace(/^\[(.*)\]$/, '$1'));
}

function servers(
  { config, flags, program, build, clock, logger }: AgentOptions,
  registry: Registry,
  health: ProxyHealth,
  metrics: ProxyMetrics,
  profiler: Profiler | undefined,
): NamedServer[] {
  const startedAt = clock.wallTime();
  const began = clock.now();
  registerConnectionMetrics(registry, httpConnections);
  const server = (name: string, address: KubeProxyConfig['metricsBindAddress'], pages: Pages) =>
    new HttpServer({ name, address, pages, hardFail: config.bindAddressHardFail, clock, logger });
  const countAnswer = metrics.countHealthAnswer.bind(metrics);
  const { healthzBindAddress, metricsBindAddress, mode } = config;
  const statusz = () => ({
    startedAt,
    upMs: clock.now() - began,
    version: build.version,
    nodeVersion: process.version,
  });
  const pages = metricsPages({
    mode,
    registry,
    component: COMPONENT,
    configz: () => writeConfigz(config.effective, program),
    ...(isEnabled(config.featureGates, 'ComponentFlagz') && { flagz: () => flags }),
    ...(isEnabled(config.featureGates, 'ComponentStatusz') && { statusz }),
    ...(profiler && { profiles: profiler.pages }),
  });
  const metricsServer = {
    server: server('metrics server', metricsBindAddress, pages),
    failure: 'FailedToStartMetricServer',
  };
  if (!healthzBindAddress) return [metricsServer];
  const healthServer = server('health server', healthzBindAddress, healthPages({ health, countAnswer }));
  return [{ server: healthServer, failure: 'FailedToStartProxierHealthcheck' }, metricsServer];
}
