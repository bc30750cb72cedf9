import { dirname } from 'node:path';
import type { CniSettings } from '../../config/index.ts';
import { type ComparedPart, inBackground, type Timer } from '../../core/index.ts';
import { nodeNamed, type ObjectEvent, ObjectsOf, type Resource, SERVICE_CIDRS } from '../../kube/index.ts';
import { watchNftables } from '../../netlink/nftables/index.ts';
import { watchNetwork } from '../../netlink/route/index.ts';
import { checkOwnDirectory } from '../../sys/index.ts';
import { LastingTrouble } from '../logger.ts';
import type { MtuSource, Part, PartContext, PodStanding, Readiness } from '../part.ts';
import { namedPodRanges } from '../pools/named-pod-ranges.ts';
import type { PodRanges } from '../pools/pod-ranges.ts';
import { FeatureGuard } from './guard/feature-guard.ts';
import { ForwardingGuard } from './guard/forwarding-guard.ts';
import { LinkWatch } from './guard/link-watch.ts';
import { PodLinks } from './guard/pod-links.ts';
import { Reclaimer } from './guard/reclaimer.ts';
import { TrafficLimits } from './guard/traffic-limits.ts';
import { configuredConflist, dataDirsOf } from './install/configured.ts';
import type { Conflist } from './install/conflist.ts';
import { CniInstaller } from './install/installer.ts';
import { besideAgent, readHostPlugin } from './install/plugin.ts';
import { SPOOL_PURPOSE, Spool } from './kept/spool.ts';
import { PodMtu } from './pod-mtu.ts';
import { macvlanKey } from './server/macvlan-key.ts';
import type { MacvlanOfNetwork } from './server/node-config.ts';
import { PluginService } from './server/plugin-service.ts';
import { requestLog, setAsideCounter } from './server/request-log.ts';
import { CniServer, SOCKET_PURPOSE } from './server/server.ts';
import { WorkerPool } from './threads/worker-pool.ts';

/** What the build calls the program of the server's threads; it lies beside the agent. */
const WORKER_FILE = 'cni-worker.js';
const RETRY_MS = 5000;
const SETTLE_MS = 60_000;
/** How long answers may take to be read at the end; with what goes on before it (PluginService) less than a kubelet's 30 s. */
const DRAIN_MS = 5000;
/** Requests after which other addresses may be in use than before. */
const CHANGING_VERBS: ReadonlySet<string | undefined> = new Set(['ADD', 'DEL', 'GC']);

/** The agent's part in the pods' network: serves the runtime's plugin, and installs it. */
export class CniPart implements Part {
  readonly #settings: CniSettings;
  readonly #context: PartContext;
  readonly resources: readonly Resource[];
  /** This node's object, or nothing. */
  readonly #nodes: ObjectsOf<'Node'>;
  readonly #serviceCidrs = new ObjectsOf('ServiceCIDR');
  /** Whether every object that existed at the start was told. */
  #synced = false;
  readonly #workers: WorkerPool;
  readonly #service: PluginService;
  readonly #server: CniServer;
  readonly #spool: Spool;
  readonly #installer: CniInstaller;
  readonly #guard: FeatureGuard;
  readonly #forwarding: ForwardingGuard;
  readonly #limits: TrafficLimits;
  readonly #links: PodLinks;
  readonly #linkWatch: LinkWatch;
  readonly #reclaimer: Reclaimer;
  /** Undefined: the routes are somebody else's, or the operator says the MTU. */
  readonly #podMtu: PodMtu | undefined;
  /** The server cannot start. */
  readonly #trouble: LastingTrouble;
  #timer: Timer | undefined;
  /** Why it serves no ADD; undefined: it does. */
  #lacks: string | undefined = 'the CNI server does not listen yet';
  #stopped = false;
  #starting: Promise<void> = Promise.resolve();
  #opening: Promise<void> = Promise.resolve();

  /**
   * @param ranges of this node's pods
   * @param mtu knows the MTU of pods whose configuration names none. @default nobody does
   * @throws ERR_CONFIG when there is no plugin to install, or the list to install is none; ERR_UNSAFE_PATH when others could
   *   replace what a directory of the flags is to hold
   */
  constructor(settings: CniSettings, context: PartContext, ranges: PodRanges, mtu?: MtuSource) {
    const { registry, clock, logger } = context;
    const { nodeName } = context.config;
    this.#settings = settings;
    this.#context = context;
    this.#trouble = new LastingTrouble(logger);
    this.resources = [nodeNamed(nodeName), ...(settings.macvlan ? [SERVICE_CIDRS] : [])];
    this.#nodes = new ObjectsOf('Node', ({ metadata }) => metadata.name === nodeName);
    const conflist = configuredConflist(settings, {
      ipMasq: context.config.routes === undefined,
      nonMasqueradeCidrs: namedPodRanges(context.config),
    });
    const { network } = conflist;
    const hasIpv6 = () => ranges.own().held.some(({ address }) => address.family === 'IPv6');
    if (mtu && !conflist.hasMtu) this.#podMtu = new PodMtu({ source: mtu, network, hasIpv6, clock, logger });
    const dataDirs = dataDirsOf(settings, conflist);
    const log = requestLog({ registry, logger, kept: () => this.#spool.count() });
    checkOwnDirectory(dirname(settings.socket), SOCKET_PURPOSE);
    checkOwnDirectory(settings.spoolDir, SPOOL_PURPOSE);
    for (const dataDir of dataDirs) checkOwnDirectory(dataDir, 'address reservations (--cni-data-dir)');
    this.#spool = new Spool(settings.spoolDir);
    this.#workers = new WorkerPool({ file: besideAgent(WORKER_FILE), clock });
    this.#service = new PluginService({
      spool: this.#spool,
      clock,
      logger,
      run: (request) => this.#workers.run(request),
      node: () => ({
        ranges: ranges.own(),
        dataDir: settings.dataDir,
        macvlan: this.#macvlanOf(conflist),
        mtu: this.#podMtu && { network, mtu: this.#podMtu.value() },
      }),
      binDir: settings.binDir,
      setAside: setAsideCounter(registry),
      served: (request) => {
        log(request);
        if (!CHANGING_VERBS.has(request.environment.CNI_COMMAND)) return;
        ranges.addressesChanged();
        this.#forwarding.podsChanged();
        this.#guard.podsChanged();
      },
    });
    this.#server = new CniServer({
      path: settings.socket,
      clock,
      logger,
      serve: (request, client) => this.#service.serve(request, client),
    });
    const passing = conflist.letsPodsThrough ? namedPodRanges(context.config) : [];
    this.#guard = new FeatureGuard({ dataDirs, passing, clock, logger, watch: (listener) => watchNftables(listener) });
    this.#forwarding = new ForwardingGuard({ dataDirs, clock, logger });
    this.#limits = new TrafficLimits(dataDirs);
    this.#links = new PodLinks(dataDirs, (task) => this.#workers.run(task));
    this.#linkWatch = new LinkWatch({
      dataDirs,
      clock,
      logger,
      run: (task) => this.#workers.run(task),
      watch: (listener) => watchNetwork({ addresses: true }, listener),
    });
    this.#reclaimer = new Reclaimer({
      dataDirs,
      registry,
      clock,
      logger,
      reclaim: (reclaim) => this.#workers.run({ reclaim }),
    });
    ranges.listen((node) => {
      if (node === nodeName) this.#look();
    });
    this.#installer = new CniInstaller({
      binDir: settings.binDir,
      confDir: settings.confDir,
      clock,
      logger,
      plugin: readHostPlugin(),
      conflist,
      objection: () => this.#objection(conflist),
    });
  }

  /**
   * Resolves when its socket listens, or when that has to be tried again later. A kept DEL may hang for half a minute before
   * anything is installed: Services and routes of the node must not wait for that.
   */
  async start(): Promise<void> {
    this.#starting = this.#start();
    await this.#starting;
  }

  /** Ready: it serves, plugin and configuration are installed, and an ADD would succeed as far as STATUS tells. */
  readiness(): Readiness {
    return { name: 'cni', reason: this.#lacks ?? this.#installer.whyNotInstalled() };
  }

  /** How the pods' network stands at this moment. */
  standing(): PodStanding {
    return {
      lacks: this.readiness().reason ?? '',
      elsewhere: this.#installer.whyNotAsked(),
      obstacles: this.#guard.obstacles(),
      differences: this.#linkWatch.differences(),
    };
  }

  compared(): readonly ComparedPart[] {
    return [this.#links, this.#guard, this.#limits];
  }

  changed(event: ObjectEvent): void {
    this.#serviceCidrs.apply(event);
    if (this.#nodes.apply(event) !== undefined) this.#look();
  }

  /** It is known now whether the node has ranges for its pods. */
  synced(): void {
    this.#synced = true;
    this.#look();
  }

  /** Ends what goes on, accepts nothing new. Plugin and configuration stay on the host. */
  async stop(): Promise<void> {
    this.#stopped = true;
    this.#timer?.cancel();
    await this.#starting;
    this.#timer?.cancel();
    this.#podMtu?.stop();
    this.#server.close();
    this.#reclaimer.stop();
    this.#forwarding.stop();
    this.#linkWatch.stop();
    // These may wait for threads that hang, which end last.
    const ended = [this.#opening, this.#installer.stop()];
    await this.#service.stop();
    await this.#server.drain(DRAIN_MS);
    await this.#workers.stop();
    await Promise.all(ended);
    await this.#guard.stop();
  }

  #macvlanOf({ network }: Conflist): MacvlanOfNetwork | undefined {
    const { macvlan } = this.#settings;
    if (!macvlan) return undefined;
    const node = this.#nodes.get(this.#context.config.nodeName);
    const cluster = { node, serviceCidrs: this.#serviceCidrs.values(), isComplete: this.#synced };
    return { network, key: macvlanKey(macvlan, cluster) };
  }

  #look(): void {
    if (this.#lacks === undefined) inBackground('CNI installation', () => this.#installer.look());
  }

  async #start(): Promise<void> {
    const { clock, logger } = this.#context;
    try {
      this.#workers.start();
      this.#spool.create();
      // First the socket, then the spool: a plugin that finds no socket looks again after it has put its request there.
      await this.#server.listen();
      logger.info({ socket: this.#settings.socket }, 'CNI server listens');
    } catch (error) {
      this.#trouble.tell(error, `The CNI server cannot start; trying again every ${RETRY_MS / 1000} s`);
      this.#timer = clock.setTimer(() => this.start(), RETRY_MS);
      return;
    }
    inBackground('kept CNI requests', () => this.#settle());
    this.#opening = this.#open();
    inBackground('CNI installation', () => this.#opening);
  }

  /** Once the way is open for ADDs, has the runtime make pods. */
  async #open(): Promise<void> {
    this.#lacks = 'DELs that were kept while no agent ran come first';
    await this.#service.open;
    if (this.#stopped) return;
    await this.#guard.start();
    if (this.#stopped) return;
    this.#forwarding.start();
    this.#linkWatch.start();
    this.#lacks = undefined;
    await this.#installer.start();
    this.#reclaimer.start();
  }

  async #settle(): Promise<void> {
    const { clock, logger } = this.#context;
    try {
      await this.#service.settle();
    } catch (error) {
      logger.error({ err: error }, 'The kept CNI requests cannot be looked through');
    }
    if (!this.#stopped) this.#timer = clock.setTimer(() => this.#settle(), SETTLE_MS);
  }

  async #objection(conflist: Conflist): Promise<string | undefined> {
    const { exitCode, stdout } = await this.#service.status(conflist.statusConfig);
    if (exitCode === 0) return undefined;
    const { msg, details } = JSON.parse(stdout) as { msg: string; details?: string };
    return details ? `${msg}: ${details}` : msg;
  }
}
