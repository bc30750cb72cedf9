import { Gauge, Registry } from 'prom-client';
import { KUBERNETES_VERSION, type KubeProxyConfig, type Program } from '../config/index.ts';
import { type Clock, errorText, type IpFamily, inBackground, stopAll } from '../core/index.ts';
import {
  type ApiClient,
  type ApiObserver,
  countUnusable,
  EventRecorder,
  type Node,
  type ObjectEvent,
  type SourceProblem,
} from '../kube/index.ts';
import type { BackgroundFailures } from './background-failures.ts';
import { registerConfigHash } from './effective/config-hash.ts';
import type { Verdict } from './effective/mode-override.ts';
import { AgentServers } from './http/agent-servers.ts';
import type { Pages } from './http/http-server.ts';
import type { Logger } from './logger.ts';
import { makeParts } from './make-parts.ts';
import type { ApiLog } from './metrics/api-log.ts';
import { ClusterVersion } from './metrics/cluster-version.ts';
import { type Build, registerComponentMetrics } from './metrics/component-metrics.ts';
import { EventLoopDelay } from './metrics/event-loop-delay.ts';
import { nodeplaneMetrics } from './metrics/nodeplane-metrics.ts';
import { logSourceProblems } from './metrics/observe.ts';
import { type AgentSource, beginConversation, type Conversation, createSource } from './object-source.ts';
import type { Part, Readiness } from './part.ts';
import { HeldObjects } from './standby/held-objects.ts';
import type { NodeClaim } from './standby/node-claim.ts';
import { StatusRecorder } from './status/collect/recorder.ts';
import type { StatusPart } from './status/status-part.ts';

/** The name kube-proxy goes by in Events and pages, which tools look for. */
const COMPONENT = 'kube-proxy';

/** After so long an end is late, and people are told what it waits for: a kubelet kills after 30 s. */
const LATE_END_MS = 5000;

/** How long an Event about why the agent ends may take. */
const LAST_WORDS_MS = 2000;

/** What an agent is made of. */
export interface AgentOptions {
  readonly program: Program;
  readonly config: KubeProxyConfig;
  /** Every flag with its value as text. */
  readonly flags: Readonly<Record<string, string>>;
  /** The command line, without the program and `agent`. */
  readonly argv: readonly string[];
  readonly build: Build;
  readonly logger: Logger;
  readonly clock: Clock;
  readonly failures: BackgroundFailures;
  /** The families this machine has. */
  readonly machineFamilies: readonly IpFamily[];
  /** Asked at each change of the own Node. At `restart` the agent does nothing more, and is to be stopped. */
  readonly ownNodeChanged: (node: Node) => Verdict;
  /** The right to work on this node. */
  readonly claim: NodeClaim;
  /** Sets up the node, once it is this agent's. */
  readonly setUpNode: () => void;
  /** Called when a part cannot do its work and the agent is to end. */
  readonly unusable: (error: Error) => void;
}

/** The parts of a running agent, and what they share: the objects, the HTTP ports, the Events. Policy lives in the parts. */
export class Agent {
  readonly #options: AgentOptions;
  readonly #client: ApiClient | undefined;
  readonly #apiLog: ApiLog;
  readonly #source: AgentSource;
  readonly #recorder: EventRecorder | undefined;
  /** In the order of their start; they are stopped in the opposite one. */
  readonly #parts: readonly Part[];
  /** The parts that hear of objects: all but those that were asked to stop. */
  readonly #listening: Set<Part>;
  /** Those that were started. */
  readonly #begun: Part[] = [];
  /** What the source tells before there is anything for parts to do. */
  readonly #objects = new HeldObjects();
  readonly #servers: AgentServers;
  readonly #status: StatusPart;
  readonly #loopDelay: EventLoopDelay;
  /** Set while another agent has the node. */
  readonly #standing: Gauge;
  #standby: Promise<void> = Promise.resolve();
  #isStandby = false;
  readonly #problems: Gauge;
  readonly #doubts: Gauge;
  /** Undefined without an API server to follow. */
  readonly #clusterVersion: ClusterVersion | undefined;
  readonly #stopping = new AbortController();

  /** @throws ERR_CONFIG when the API server's credentials cannot be read, or a part cannot be made as configured */
  static async create(options: AgentOptions): Promise<Agent> {
    const { config, clock, logger, build } = options;
    const userAgent = `${COMPONENT}/nodeplane-${build.version}`;
    const registry = new Registry();
    return new Agent(options, registry, await beginConversation({ config, clock, logger, registry, userAgent }));
  }

  private constructor(options: AgentOptions, registry: Registry, { client, observe, log }: Conversation) {
    const { config, build, logger, clock, failures, machineFamilies } = options;
    const { mode, nodeName } = config;
    this.#options = options;
    this.#client = client;
    this.#apiLog = log;
    this.#recorder = client && new EventRecorder({ client, controller: COMPONENT, nodeName, clock });
    this.#problems = new Gauge({
      name: 'nodeplane_object_problems',
      help: 'Objects that cannot be read at the moment; their last good state is in force.',
      registers: [registry],
    });
    this.#doubts = new Gauge({
      name: 'nodeplane_object_doubts',
      help: 'Fields and values of manifests that do nothing, or probably not what was meant; their objects are in force.',
      registers: [registry],
    });
    this.#standing = new Gauge({
      name: 'nodeplane_standby',
      help: '1 while another agent works on this node and this one waits for its end, else 0.',
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
    registerConfigHash(registry, config);
    const ages = (since: ReadonlyMap<string, number>) =>
      [...since].map(([resource, at]) => [resource, (clock.now() - at) / 1000] as const);
    const watchAges = () => ages(this.#source.silentSince());
    const recorder = new StatusRecorder(clock);
    this.#loopDelay = new EventLoopDelay(registry, clock);
    const metricsOfOurs = nodeplaneMetrics({ registry, version: build.version, mode, ...(client && { watchAges }) });
    const { parts, services, status } = makeParts({
      shared: {
        config,
        registry,
        clock,
        logger,
        client,
        recorder: this.#recorder,
        stopping: this.#stopping.signal,
        unusable: options.unusable,
      },
      machineFamilies,
      proxyObservers: [failures.observe, metricsOfOurs, recorder.observe, this.#loopDelay.observe],
      observe,
      argv: options.argv,
      version: build.version,
      statusRecorder: recorder,
      controlSocket: options.claim.socket,
      standsByFor: () => (this.#isStandby ? options.claim.holder() : ''),
      watches: () => ages(this.#source.lastActivity()).map(([resource, seconds]) => ({ resource, seconds })),
    });
    this.#status = status;
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
    const readiness = () => this.#readiness();
    const shown = { registry, health, countAnswer, readiness, pages, statusPages: this.#status.openPages };
    this.#servers = new AgentServers({ ...options, component: COMPONENT, ...shown });
  }

  /**
   * Begins the work; where another agent has the node, once that has ended.
   *
   * @throws ERR_CONFIG when a port cannot be listened on and that is fatal, or the folder of manifests cannot be read
   */
  async start(): Promise<void> {
    const { claim, unusable } = this.#options;
    if (!claim.tryTake()) {
      this.#isStandby = true;
      this.#standby = this.#standBy().catch(unusable);
      return;
    }
    await this.#servers.start(this.#tellFailedPort);
    await this.#work();
    await this.#listen();
  }

  async stop(): Promise<void> {
    const { clock, logger } = this.#options;
    this.#stopping.abort();
    this.#listening.clear();
    await this.#standby;
    this.#clusterVersion?.stop();
    this.#loopDelay.stop();
    let waitsFor = '';
    const late = clock.setTimer(
      () => logger.warn({ waitsFor }, 'The end takes long: something still works'),
      LATE_END_MS,
    );
    await stopAll([...this.#begun.toReversed(), this.#source.source, this.#servers], ({ constructor: { name } }) => {
      waitsFor = name;
    });
    late.cancel();
    this.#recorder?.stop();
    this.#client?.close();
  }

  /** Knows what there is to do, and does nothing, until the other agent has ended. */
  async #standBy(): Promise<void> {
    const { claim, clock, logger } = this.#options;
    const began = clock.now();
    this.#standing.set(1);
    const facts = { lock: claim.path, holder: claim.holder() };
    logger.info(facts, 'Another agent works on this node: standing by, ready to take over, and writing nothing');
    await this.#servers.listenIfFree();
    await this.#listen();
    if (!(await claim.take(this.#stopping.signal))) return;
    const { size: objects, isComplete: complete } = this.#objects;
    const waitedSeconds = Math.round((clock.now() - began) / 1000);
    logger.info({ waitedSeconds, objects, complete }, 'The other agent has ended: taking over');
    await this.#servers.takeOver(this.#tellFailedPort);
    this.#isStandby = false;
    this.#standing.set(0);
    await this.#work();
  }

  /** Starts the parts, and tells them all objects that are known. */
  async #work(): Promise<void> {
    this.#options.setUpNode();
    for (const part of this.#parts) {
      this.#begun.push(part);
      await part.start();
    }
    this.#record('Normal', 'Starting', '');
    this.#objects.release({
      event: (event) => this.#changed(event),
      listed: (kind) => {
        for (const part of this.#listening) part.listed?.(kind);
      },
      synced: () => {
        for (const part of this.#listening) part.synced?.();
      },
    });
  }

  /** Begins to hear of objects. */
  async #listen(): Promise<void> {
    const logProblems = logSourceProblems(this.#options.logger);
    await this.#source.source.start({
      event: (event) => {
        this.#loopDelay.stir();
        this.#lookAtOwnNode(event);
        this.#objects.event(event);
      },
      listed: (kind) => this.#objects.listed(kind),
      synced: () => {
        this.#apiLog.complete();
        this.#objects.synced();
      },
      problems: (problems: readonly SourceProblem[]) => {
        const doubts = problems.filter(({ inForce }) => inForce).length;
        this.#problems.set(countUnusable(problems));
        this.#doubts.set(doubts);
        this.#status.objectProblems(problems);
        // That a resource cannot be read is told by the conversation itself.
        logProblems(problems.filter(({ unread }) => !unread));
      },
    });
    this.#clusterVersion?.start();
  }

  #lookAtOwnNode({ type, object }: ObjectEvent): void {
    const { config, ownNodeChanged } = this.#options;
    if (object.kind !== 'Node' || object.metadata.name !== config.nodeName || type === 'deleted') return;
    const verdict = ownNodeChanged(object);
    if (verdict?.kind === 'problem' && !this.#isStandby) this.#record('Warning', 'InvalidAnnotation', verdict.text);
    if (verdict?.kind !== 'restart') return;
    // Nothing is to be written any more in the mode that is over.
    this.#stopping.abort();
    this.#listening.clear();
  }

  #readiness(): readonly Readiness[] {
    if (!this.#isStandby) return this.#parts.flatMap((part) => part.readiness?.() ?? []);
    const { claim } = this.#options;
    return [{ name: 'standby', reason: `${claim.holder()} works on this node and holds "${claim.path}"` }];
  }

  readonly #tellFailedPort = async (reason: string, error: unknown): Promise<void> => {
    this.#record('Warning', reason, errorText(error));
    await this.#recorder?.drain(LAST_WORDS_MS);
  };

  #record(type: 'Normal' | 'Warning', reason: string, note: string): void {
    const node = { kind: 'Node', name: this.#options.config.nodeName, namespace: '' } as const;
    this.#recorder?.record(node, { type, reason, action: 'StartKubeProxy', note });
  }

  /** What one object leads to in one part must not keep the others from being taken in. */
  #changed(event: ObjectEvent): void {
    for (const part of this.#listening) inBackground('object', () => part.changed?.(event));
  }
}
