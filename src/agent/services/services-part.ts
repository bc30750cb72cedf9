import {
  type ComparedPart,
  type IpAddress,
  type IpFamily,
  inBackground,
  nothingToCompare,
  tryParseIp,
} from '../../core/index.ts';
import type { KubeKind, ObjectEvent, Resource } from '../../kube/index.ts';
import {
  changeOf,
  type NodePlan,
  type PreparedMode,
  ProxyHealth,
  ProxyMetrics,
  type ProxyObserver,
  proxyResources,
  ServiceObjects,
  type ServiceStore,
} from '../../proxy/index.ts';
import { type Exec, exec } from '../../sys/index.ts';
import { logProxyEvents, recordProxyEvents } from '../metrics/observe.ts';
import type { Part, PartContext, Readiness } from '../part.ts';
import type { ExplainingFamily } from '../status/collect/service-report.ts';
import { flowMetrics } from './conntrack/flow-metrics.ts';
import { createFamily, type Family, type FamilyOptions } from './family.ts';
import { localhostMetrics } from './localhost-metrics.ts';
import { MODES } from './modes/modes.ts';
import { preparePatiently } from './modes/prepare-patiently.ts';
import { type RemovalOptions, removeOtherModes } from './modes/remove-others.ts';
import { checkNode } from './node-check.ts';
import { NodePortClashes } from './node-port-clashes.ts';
import { NodeSettings } from './node-settings.ts';
import { beginTraffic } from './traffic/begin-traffic.ts';
import type { TrafficSource } from './traffic/traffic-source.ts';
import { recordTroubles } from './trouble-events.ts';

export interface ServicesPartOptions {
  readonly context: PartContext;
  /** The families this machine has. */
  readonly machineFamilies: readonly IpFamily[];
  /** Observers of the proxies, besides log, metrics, health and Events. */
  readonly observers: readonly ProxyObserver[];
}

/** A family as `status` and `explain` show it. */
export interface PlannedForPeople extends Omit<ExplainingFamily, 'record'> {
  readonly node: NodePlan;
  isUnwritten(serviceName: string): boolean;
}

/**
 * Makes Services work: looks for the way into the kernel that the configuration asks for, waits until the objects are known,
 * and runs one proxy for each family from then on. The rules stay in the kernel when it stops.
 */
export class ServicesPart implements Part {
  readonly resources: readonly Resource[];
  readonly health: ProxyHealth;
  readonly metrics: ProxyMetrics;
  readonly #options: ServicesPartOptions;
  readonly #store: ServiceObjects;
  readonly #observers: readonly ProxyObserver[];
  readonly #localhost: FamilyOptions['localhost'];
  readonly #cleaned: FamilyOptions['cleaned'];
  readonly #clashes: NodePortClashes;
  /** Empty until the way into the kernel is known. */
  #families: ReadonlyMap<IpFamily, Family> = new Map();
  /** Undefined unless its metrics are asked for. */
  #traffic: TrafficSource | undefined;
  /** Of other modes' rules. */
  readonly #removals: Promise<void>[] = [];
  #areNodesListed = false;
  /** Those whose rules were complete once. */
  readonly #complete = new Set<IpFamily>();
  /** Resolves when all objects were read once, or the agent stops. */
  readonly #known: Promise<void>;
  #objectsKnown: () => void = () => {};

  constructor(options: ServicesPartOptions) {
    const { config, registry, clock, logger, recorder, stopping } = options.context;
    this.#options = options;
    this.resources = proxyResources(config.nodeName, config.serviceProxyName);
    this.#store = new ServiceObjects(config.serviceProxyName);
    this.#known = new Promise((resolve) => {
      this.#objectsKnown = resolve;
    });
    stopping.addEventListener('abort', () => this.#objectsKnown(), { once: true });
    this.metrics = new ProxyMetrics(registry, MODES[config.mode].metrics);
    this.health = new ProxyHealth({ clock, timeoutMs: 2 * config.syncPeriodMs });
    // Load balancers wait until the node is known and so are its Services.
    this.health.nodeChanged(undefined);
    this.health.setPrepared(false);
    this.#observers = [
      logProxyEvents(logger, clock),
      ...options.observers,
      this.metrics.observe,
      this.health.observe,
      ({ kind, family }) => void (kind === 'syncFinished' && this.#complete.add(family)),
      ...(recorder ? [recordProxyEvents(recorder), recordTroubles(recorder, clock)] : []),
    ];
    this.#localhost = localhostMetrics(registry, logger, clock);
    this.#cleaned = flowMetrics(registry, logger);
    const families = () => this.planned();
    this.#clashes = new NodePortClashes({ nodeName: config.nodeName, families, clock, logger, recorder });
  }

  /** Begins to look for the way into the kernel, which may take as long as another process holds a lock. */
  start(): void {
    const { clock, logger, config, stopping, unusable } = this.#options.context;
    const attempt = async (cancellable: Exec) => {
      const families = this.#options.machineFamilies;
      const prepared = await MODES[config.mode].prepare(config, { families, exec: cancellable, logger });
      await this.#known;
      checkNode(config, prepared, this.#store.node(config.nodeName));
      return prepared;
    };
    // The pods' network waits for nothing that the proxy needs, and does not end with it.
    preparePatiently({ attempt, exec, failureIsFatal: !config.cni, clock, logger, signal: stopping })
      .then((prepared) => prepared && this.#serve(prepared))
      .catch(unusable);
  }

  /** The objects that Services are planned from. */
  get objects(): ServiceStore {
    return this.#store;
  }

  /** What is planned, and why, for people. Empty until the way into the kernel is known. */
  planned(): readonly PlannedForPeople[] {
    return [...this.#families].map(([family, { proxy }]) => ({
      family,
      node: proxy.plan.node,
      ports: proxy.plan.ports,
      explain: (serviceName) => proxy.explain(serviceName),
      isUnwritten: (serviceName) => proxy.isUnwritten(serviceName),
    }));
  }

  /** Also before the way into the kernel is known: then it cannot be told. */
  compared(): readonly ComparedPart[] {
    const name = (family: IpFamily) => `Services ${family}`;
    if (this.#families.size > 0) {
      const ofFamilies = [...this.#families].map(([family, { proxy }]) => ({
        name: name(family),
        compare: () => proxy.compare(),
        repair: () => proxy.repair(),
      }));
      const { config } = this.#options.context;
      return [...ofFamilies, new NodeSettings(config.conntrack, MODES[config.mode].sysctls?.(config) ?? {})];
    }
    const untold = async (): Promise<never> => {
      throw nothingToCompare('Services', 'the objects, or the way into the kernel, are not known yet');
    };
    return this.#options.machineFamilies.map((family) => ({ name: name(family), compare: untold, repair: untold }));
  }

  /** Ready: the rules of all Services were complete once, in each family that is served, and keep up since. */
  readiness(): Readiness {
    const name = 'services';
    const families = [...this.#families.keys()];
    if (families.length === 0) return { name, reason: 'the objects, or the way into the kernel, are not known yet' };
    const missing = families.filter((family) => !this.#complete.has(family));
    if (missing.length > 0) return { name, reason: `the rules of ${missing.join(' and ')} are not written yet` };
    return { name, reason: this.health.isHealthy() ? undefined : 'a sync is outstanding for too long' };
  }

  changed(event: ObjectEvent): void {
    const touched = this.#store.apply(event);
    for (const [family, { proxy }] of this.#families) {
      const change = changeOf(event, family);
      if (change && touched.services.length > 0) proxy.touch(touched.services, change);
    }
    const { nodeName } = this.#options.context.config;
    if (touched.node === nodeName || touched.serviceCidrs) {
      this.health.nodeChanged(this.#store.node(nodeName));
      for (const { proxy } of this.#families.values()) proxy.nodeChanged();
    } else if (touched.node !== undefined) {
      for (const { proxy } of this.#families.values()) proxy.addressesChanged();
    }
  }

  listed(kind: KubeKind): void {
    if (kind === 'Node') this.#areNodesListed = true;
  }

  synced(): void {
    const { config, logger } = this.#options.context;
    const node = this.#store.node(config.nodeName);
    if (!node) {
      const text = this.#areNodesListed
        ? 'There is no Node object of this name: give --hostname-override the one it has'
        : 'The Node object could not be read: the API server has not answered, or does not let this account list and watch nodes';
      logger.warn({ node: config.nodeName }, text);
    }
    this.health.nodeChanged(node);
    this.#objectsKnown();
  }

  async stop(): Promise<void> {
    await this.#traffic?.close();
    for (const family of this.#families.values()) await family.stop();
    await Promise.all(this.#removals);
    // Last: a sync that was under way may have told it of changes.
    this.#clashes.close();
  }

  /** Begins to write rules, in a way that passed the check. */
  #serve(prepared: PreparedMode): void {
    const { config, logger, stopping } = this.#options.context;
    if (stopping.aborted) return;
    const { advice, warnings } = checkNode(config, prepared, this.#store.node(config.nodeName));
    for (const text of advice) logger.info(text);
    for (const warning of warnings) logger.warn(warning);
    this.#families = this.#familiesOf(prepared);
    this.health.setPrepared(true);
    for (const { proxy } of this.#families.values()) proxy.start();
  }

  /** Awaited at the end: whoever writes after us must not lose rules to it. */
  #removeOthers(options: RemovalOptions): void {
    const removal = removeOtherModes(options);
    inBackground('removal of other modes', () => removal);
    this.#removals.push(removal.catch(() => {}));
  }

  #familiesOf(prepared: PreparedMode): ReadonlyMap<IpFamily, Family> {
    const { config, registry, clock, logger, client, recorder, stopping } = this.#options.context;
    const { mode } = config;
    const { excludeCidrs } = config.ipvs;
    const createDataplane = prepared.begin(registry);
    this.#traffic = beginTraffic(this.#options.context, prepared, () => this.#families);
    const removal = { mode, exec, clock, logger, excludeCidrs, signal: stopping };
    const familyOf = (family: IpFamily): Family =>
      createFamily({
        config,
        family,
        createDataplane,
        clock,
        logger,
        recorder,
        observers: this.#observers,
        store: this.#store,
        health: this.health,
        localhost: this.#localhost,
        cleaned: this.#cleaned,
        noted: (delta) => {
          this.#traffic?.note(delta);
          this.#clashes.note(delta);
        },
        apiServer: () => client && addressOfServer(client.server),
        onFirstSync: () => this.#removeOthers({ ...removal, family }),
      });
    return new Map(prepared.families.map((family) => [family, familyOf(family)]));
  }
}

/** Undefined: it is reached by a name. */
function addressOfServer({ hostname }: URL): IpAddress | undefined {
  return tryParseIp(hostname.replace(/^\[(.*)\]$/, '$1'));
}
