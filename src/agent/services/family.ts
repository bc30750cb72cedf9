import { isEnabled, type KubeProxyConfig } from '../../config/index.ts';
import { type Clock, type IpAddress, type IpFamily, inBackground } from '../../core/index.ts';
import type { EventRecorder } from '../../kube/index.ts';
import {
  type Dataplane,
  type DataplaneHooks,
  FamilyProxy,
  type NodeSettings,
  nodePortAddressTest,
  type PlanDelta,
  type ProxyHealth,
  type ProxyObserver,
  type ServiceStore,
} from '../../proxy/index.ts';
import { kernelRules, LocalhostDataplane, type LocalhostState } from '../../proxy/localhost/index.ts';
import type { Logger } from '../logger.ts';
import { FlowCleaner, type FlowCleaning } from './conntrack/flow-cleaner.ts';
import { openFlowTable } from './conntrack/flow-table.ts';
import { UnansweredCleaner } from './conntrack/unanswered-cleaner.ts';
import { reportHealthCheckFailures } from './health-check-failures.ts';
import { HealthCheckPorts } from './health-check-ports.ts';
import { localAddresses, ownSource } from './local-addresses.ts';
import { MODES } from './modes/modes.ts';

/** kube-proxy's: a full sync is made after this long without one. */
const MAX_SYNC_INTERVAL_MS = 3_600_000;
const FIRST_RETRY_MS = 1000;

export interface FamilyOptions {
  readonly config: KubeProxyConfig;
  readonly family: IpFamily;
  readonly createDataplane: (family: IpFamily, hooks: DataplaneHooks) => Dataplane;
  readonly store: ServiceStore;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly health: ProxyHealth;
  /** Undefined without an API server. */
  readonly recorder: EventRecorder | undefined;
  /** Where the API server is, if it is reached by an address. */
  readonly apiServer: () => IpAddress | undefined;
  readonly observers: readonly ProxyObserver[];
  /** Called once, when the first full sync has succeeded. */
  readonly onFirstSync: () => void;
  /** Told how NodePorts at localhost are doing. */
  readonly localhost: (state: LocalhostState) => void;
  /** Told what each sync is going to change. */
  readonly noted: (delta: PlanDelta) => void;
  /** Called after each cleaning of tracked flows. */
  readonly cleaned: (cleaning: FlowCleaning) => void;
}

/** One family at work: its proxy, and what goes along with its syncs. */
export interface Family {
  readonly proxy: FamilyProxy;
  stop(): Promise<void>;
}

/**
 * Puts a family together: its proxy, which has not begun, with the tracked flows, health check ports and NodePorts at localhost
 * that follow what it writes.
 *
 * @throws ERR_NETLINK_SOCKET, and why the mode’s dataplane cannot be made
 */
export function createFamily(options: FamilyOptions): Family {
  const { config, family, store, clock, logger, health, recorder, observers, onFirstSync, cleaned, noted } = options;
  const { syncPeriodMs, minSyncPeriodMs, nodeName } = config;
  let hasSynced = false;
  const table = openFlowTable();
  const mode = MODES[config.mode];
  const cleaner = new FlowCleaner({ family, protocols: mode.flowProtocols, table, clock });
  const unanswered = new UnansweredCleaner({ family, protocols: mode.unansweredProtocols, table, clock, cleaned });
  const note = (delta: PlanDelta) => {
    cleaner.note(delta);
    unanswered.note(delta);
  };
  const healthChecks = new HealthCheckPorts({
    family,
    isHealthy: () => health.isHealthy(),
    failed: reportHealthCheckFailures(logger, recorder),
  });
  const verify = () => proxy.verify();
  const dataplane = new LocalhostDataplane({
    dataplane: options.createDataplane(family, { changedByOthers: verify }),
    rules: kernelRules(family, verify),
    protocols: mode.localhostProtocols,
    told: options.localhost,
  });
  const proxy: FamilyProxy = new FamilyProxy({
    clock,
    nodeName,
    settings: nodeSettings(config),
    externalIps: isEnabled(config.featureGates, 'AllowServiceExternalIPs'),
    store,
    dataplane,
    localAddresses,
    ownSource,
    apiServer: options.apiServer,
    externalIpCidrs: config.externalIpCidrs,
    hint: mode.hint,
    observers: [
      ...observers,
      (event) => {
        if (event.family !== family || event.kind !== 'syncFinished') return;
        if (!hasSynced) onFirstSync();
        hasSynced = true;
        const { nodePortAddresses } = proxy.plan.node;
        const wanted = { checks: proxy.healthChecks.values(), addresses: nodePortAddresses };
        inBackground('health check ports', () => healthChecks.reconcile(wanted));
      },
    ],
    flows: {
      note(delta) {
        note(delta);
        noted(delta);
      },
      async clean({ ports, node: { nodePortAddresses, loopbackNodePorts = false } }, localAddresses, isWhole) {
        // What began while rules were missing is not translated.
        if (isWhole) note({ upserted: [...ports.values()], removed: [] });
        const isNodePortAddress = () =>
          nodePortAddressTest({ nodePortAddresses, localAddresses: localAddresses(), localhost: loopbackNodePorts });
        unanswered.committed(isNodePortAddress);
        const cleaning = await cleaner.clean(isNodePortAddress);
        if (cleaning) cleaned(cleaning);
      },
    },
    minIntervalMs: minSyncPeriodMs,
    maxIntervalMs: MAX_SYNC_INTERVAL_MS,
    verifyIntervalMs: syncPeriodMs,
    retry: { firstMs: FIRST_RETRY_MS, maxMs: syncPeriodMs },
  });
  return {
    proxy,
    async stop() {
      await proxy.stop();
      await unanswered.stop();
      await dataplane.close();
      await healthChecks.close();
      table.close();
    },
  };
}

/** Without a cluster there is no cluster CIDR to be told: the Node's manifest says what is a pod. */
function nodeSettings(config: KubeProxyConfig): NodeSettings {
  const { detectLocal, manifests } = config;
  const untold = detectLocal.mode === 'ClusterCIDR' && detectLocal.cidrs.length === 0;
  return {
    ...config,
    detectLocal: manifests !== '' && untold ? { mode: 'NodeCIDR' } : detectLocal,
  };
}
