import type { IpFamily } from '../core/index.ts';
import type { ApiObserver } from '../kube/index.ts';
import type { ProxyObserver } from '../proxy/index.ts';
import { CniPart } from './cni/cni-part.ts';
import { ControlPart } from './control/control-part.ts';
import { diffPages } from './diff/diff-pages.ts';
import { EvidencePart } from './evidence/index.ts';
import { ExplainPart } from './explain/explain-part.ts';
import { leftNetwork } from './left/left-network.ts';
import { leftRoutes } from './left/left-routes.ts';
import { lookAround } from './migration/look-around.ts';
import { MigrationPart } from './migration/migration-part.ts';
import { OwnNodePart } from './own-node/own-node-part.ts';
import { type Part, type PartContext, PODS_OF_OTHERS } from './part.ts';
import { PoolsPart } from './pools/pools-part.ts';
import { RoutesPart } from './routes/routes-part.ts';
import { ServicesPart } from './services/services-part.ts';
import { writesPage } from './standby/agent-at-work.ts';
import type { StatusSources } from './status/collect/collect.ts';
import type { WatchAge } from './status/collect/facts.ts';
import type { StatusRecorder } from './status/collect/recorder.ts';
import { StatusPart } from './status/status-part.ts';

/** What parts are made of. */
export interface PartsOptions {
  readonly shared: Omit<PartContext, 'announcer'>;
  /** The families this machine has. */
  readonly machineFamilies: readonly IpFamily[];
  /** Hear what the proxy does. */
  readonly proxyObservers: readonly ProxyObserver[];
  /** Hears of what is asked of the API server. */
  readonly observe: ApiObserver;
  /** The command line, without the program and `agent`. */
  readonly argv: readonly string[];
  readonly version: string;
  readonly statusRecorder: StatusRecorder;
  /** Where root may ask the agent; empty: nowhere. */
  readonly controlSocket: string;
  /** See `StatusFacts`. */
  readonly standsByFor: StatusSources['standsByFor'];
  /** Of the watches at the API server. */
  readonly watches: () => readonly WatchAge[];
}

/** The parts of an agent. */
export interface AgentParts {
  /** In the order of their start; they are stopped in the opposite one, and hear of objects in this one. */
  readonly parts: readonly Part[];
  /** Two of them, which the agent's ports show. */
  readonly services: ServicesPart;
  readonly status: StatusPart;
}

/**
 * Makes the parts that the configuration asks for, and introduces those to each other that ask one another.
 *
 * @throws ERR_CONFIG when one cannot be made as configured
 */
export function makeParts(options: PartsOptions): AgentParts {
  const { shared, machineFamilies, version, statusRecorder: recorder } = options;
  const { config, clock, logger, client } = shared;
  const ownNode = new OwnNodePart(shared);
  const context: PartContext = { ...shared, announcer: ownNode.announcer };
  // The kernel tells what happens only once: this one begins first.
  const evidence = new EvidencePart(context);
  const left = { routes: leftRoutes(shared), network: leftNetwork(shared) };
  const services = new ServicesPart({ context, machineFamilies, observers: options.proxyObservers });
  // Of the others the one that writes our Node ends last; what an earlier agent left is looked at before anybody removes it.
  const parts: Part[] = [evidence, ownNode, left.routes, left.network];
  if (config.migrationAnnotation) parts.push(new MigrationPart(context, () => lookAround(config)));
  parts.push(services);
  let addresses: StatusSources['addresses'];
  let routes: StatusSources['routes'];
  let cni: CniPart | undefined;
  if (config.routes || config.cni) {
    // Hears of objects before those that ask it.
    const pools = new PoolsPart(context, options.observe);
    parts.push(pools);
    addresses = () => pools.addresses();
    const routesPart = config.routes && new RoutesPart(config.routes, context, machineFamilies, pools);
    if (routesPart) parts.push(routesPart);
    routes = routesPart && { mode: config.routes.mode, standing: () => routesPart.standing() };
    cni = config.cni && new CniPart(config.cni, context, pools, routesPart);
    if (cni) parts.push(cni);
  }
  const status = new StatusPart({
    config,
    argv: options.argv,
    version,
    clock,
    recorder,
    families: () => services.planned(),
    healthy: () => services.health.isHealthy(),
    standsByFor: options.standsByFor,
    api: client && (() => ({ server: client.server.href, watches: options.watches() })),
    routes,
    leftRoutes: () => left.routes.found(),
    leftNetwork: () => left.network.found(),
    addresses,
    pods: () => cni?.standing() ?? PODS_OF_OTHERS,
    ruleChanges: () => evidence.ruleChanges(),
  });
  parts.push(status, new ExplainPart({ context, services, recorder, evidence, commands: status.commands }));
  // Shows what all others have for it.
  if (options.controlSocket !== '') {
    const compared = () => parts.flatMap((part) => part.compared?.() ?? []);
    const pages = diffPages({ node: config.nodeName, mode: config.mode, clock, parts: compared });
    const writes = writesPage({ mode: config.mode, routes: config.routes !== undefined });
    Object.assign(pages, writes, ...parts.map((part) => part.controlPages));
    parts.push(new ControlPart({ path: options.controlSocket, pages, clock, logger }));
  }
  return { parts, services, status };
}
