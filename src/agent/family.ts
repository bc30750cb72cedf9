import { isEnabled, type KubeProxyConfig } from '../config/index.ts';
import type { Clock, IpAddress, IpFamily } from '../core/index.ts';
import type { EventRecorder, ObjectStore } from '../kube/index.ts';
import { listAddresses, Netlink } from '../netlink/index.ts';
import {
  FamilyProxy,
  type NodeSettings,
  nodePortAddressTest,
  type ProxyHealth,
  type ProxyObserver,
} from '../proxy/index.ts';
import { enableRouteLocalnet, IptablesDataplane, type OtherVariant } from '../proxy/iptables/index.ts';
import type { DetectedVariant } from '../proxy/rules/index.ts';
import { exec } from '../sys/index.ts';
import { FlowCleaner, type FlowCleaning } from './conntrack/flow-cleaner.ts';
import { openFlowTable } from './conntrack/flow-table.ts';
import { reportHealthCheckFailures } from './health-check-failures.ts';
import { HealthCheckPorts } from './health-check-ports.ts';
import type { Logger } from './logger.ts';
import { isConntrackLiberal } from './preflight.ts';

/** kube-proxy's: a full sync is made after this long without one. */
const MAX_SYNC_INTERVAL_MS = 3_600_000;
const FIRST_RETRY_MS = 1000;

export interface FamilyOptions {
  readonly config: KubeProxyConfig;
  readonly family: IpFamily;
  readonly variant: DetectedVariant;
  readonly store: ObjectStore;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly health: ProxyHealth;
  /** Undefined without an API server. */
  readonly recorder: EventRecorder | undefined;
  readonly observers: readonly ProxyObserver[];
  /** Whether the rules' named counters exist. */
  readonly accounting: boolean;
  /** Told about each cleaning of tracked flows. */
  readonly cleaned: (cleaning: FlowCleaning) => void;
}

/** One family at work: its proxy, and what goes along with its syncs. */
export interface Family {
  readonly proxy: FamilyProxy;
  stop(): Promise<void>;
}

export function createFamily(options: FamilyOptions): Family {
  const { config, family, variant, store, clock, logger, health, recorder, observers, accounting, cleaned } = options;
  const { syncPeriodMs, minSyncPeriodMs, nodeName } = config;
  const table = openFlowTable();
  const cleaner = new FlowCleaner({ family, table, clock });
  const healthChecks = new HealthCheckPorts({
    family,
    isHealthy: () => health.isHealthy(),
    failed: reportHealthCheckFailures(logger, recorder),
  });
  const proxy: FamilyProxy = new FamilyProxy({
    clock,
    nodeName,
    settings: nodeSettings(config),
    externalIps: isEnabled(config.featureGates, 'AllowServiceExternalIPs'),
    store,
    dataplane: new IptablesDataplane({
      ...{ family, variant: variant.variant, exec, dropInvalid: !isConntrackLiberal(), accounting },
      ...(variant.otherHoldsServices && { otherVariant: tellOtherVariant(family, logger) }),
    }),
    localAddresses,
    observers: [
      ...observers,
      (event) => {
        if (event.family !== family || event.kind !== 'syncFinished') return;
        const { nodePortAddresses, loopbackNodePorts } = proxy.plan.node;
        if (event.full && loopbackNodePorts) allowLoopback(logger);
        void healthChecks.reconcile({ checks: proxy.healthChecks.values(), addresses: nodePortAddresses });
      },
    ],
    flows: {
      note: (delta) => cleaner.note(delta),
      async clean({ node: { nodePortAddresses, loopbackNodePorts = false } }) {
        const addresses = { nodePortAddresses, localAddresses: localAddresses(), localhost: loopbackNodePorts };
        const cleaning = await cleaner.clean(nodePortAddressTest(addresses));
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
      await healthChecks.close();
      table.close();
    },
  };
}

function tellOtherVariant(family: IpFamily, logger: Logger): OtherVariant {
  return {
    cleaned: (other) =>
      logger.info({ family, variant: other }, 'A proxy’s rules in the other iptables variant are removed'),
    failed: (other, error) =>
      logger.warn(
        { family, variant: other, err: error },
        'A proxy’s rules in the other iptables variant apply too and could not be removed',
      ),
  };
}

/** Without a cluster there is no cluster CIDR to be told: the Node's manifest says what is a pod. */
function nodeSettings(config: KubeProxyConfig): NodeSettings {
  const { detectLocal, manifests } = config;
  const untold = detectLocal.mode === 'ClusterCIDR' && detectLocal.cidrs.length === 0;
  return { ...config, detectLocal: manifests !== '' && untold ? { mode: 'NodeCIDR' } : detectLocal };
}

/** Only now that the rules that keep neighbours from 127.0.0.0/8 are in the kernel. */
function allowLoopback(logger: Logger): void {
  try {
    if (enableRouteLocalnet()) logger.info('net.ipv4.conf.all.route_localnet is on now, for NodePorts at 127.0.0.1');
  } catch (error) {
    logger.warn(
      { err: error },
      'NodePorts do not answer at 127.0.0.1; --iptables-localhost-nodeports=false asks for none',
    );
  }
}

/** The addresses on this machine's interfaces; unlike os.networkInterfaces() also on those without a carrier. */
function localAddresses(): IpAddress[] {
  const netlink = Netlink.openRoute();
  try {
    return listAddresses(netlink).map(({ address }) => address);
  } finally {
    netlink.close();
  }
}
