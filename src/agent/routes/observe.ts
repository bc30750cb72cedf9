import { Counter, Gauge, type Registry } from 'prom-client';
import { type Clock, driftText, errorText, type IpFamily } from '../../core/index.ts';
import type { RouteObserver } from '../../routes/index.ts';
import type { Logger } from '../logger.ts';
import { LeftOutLog } from './left-out-log.ts';

/** Writes what becomes of the routes into the log: one line for what an operator wants to see, the rest at debug level. */
export function logRouteEvents(logger: Logger): RouteObserver {
  const leftOut = { IPv4: new LeftOutLog(logger, 'IPv4'), IPv6: new LeftOutLog(logger, 'IPv6') };
  /** Families all of whose routes are compared, because something changed that is not the agent's work. */
  const disturbed = new Set<IpFamily>();
  /** Why routes could not be written, as it was told last: it is tried again and again. */
  const told = new Map<IpFamily, string>();
  return (event) => {
    const { kind, family } = event;
    switch (kind) {
      case 'waiting':
        logger.info({ family }, `No routes to other nodes yet: ${event.reason}`);
        break;
      case 'synced': {
        const { full, seconds, operations, figures } = event;
        told.delete(family);
        const level = operations > 0 || full ? 'info' : 'debug';
        logger[level](
          { family, full, seconds, operations, ...figures.peers, leftOut: figures.leftOut },
          'Routes synced',
        );
        if (full && disturbed.delete(family) && operations > 0) {
          logger.warn({ family, operations }, 'Routes of ours were gone, or not as they are meant; they are back');
        }
        leftOut[family].write();
        break;
      }
      case 'syncFailed': {
        const { error, retryInMs } = event;
        const isNews = told.get(family) !== errorText(error);
        told.set(family, errorText(error));
        logger[isNews ? 'error' : 'debug'](
          { family, retryInMs, err: error },
          'Routes to other nodes cannot be written; those before stay in force',
        );
        break;
      }
      case 'leftOut':
        leftOut[family].add(event.name, event.reason);
        break;
      case 'mtuKnown':
        logger.info({ family, mtu: event.mtu }, 'The largest packet on the way to other nodes');
        break;
      case 'disturbed':
        disturbed.add(family);
        logger.info({ family }, 'Our routes, or a link they need, changed; comparing all of them');
        break;
      case 'driftFound': {
        const { drifts } = event;
        logger.warn(
          { family, drifts: drifts.slice(0, 20).map(driftText), count: drifts.length },
          'Somebody changed our routes; repairing',
        );
        break;
      }
      case 'verifyFailed':
        logger.warn({ family, err: event.error }, 'The routes could not be compared with the kernel');
    }
  };
}

/** Registers the metrics of the routes, and returns the observer that feeds them. */
export function routeMetrics(registry: Registry, clock: Pick<Clock, 'wallTime'>): RouteObserver {
  const common = { labelNames: ['ip_family'], registers: [registry] };
  const peers = new Gauge({
    ...common,
    name: 'nodeplane_routes_peers',
    help: 'Nodes whose pods are reached from this one: directly, through the tunnel of VXLAN, or by WireGuard.',
    labelNames: ['ip_family', 'way'],
  });
  const leftOut = new Gauge({
    ...common,
    name: 'nodeplane_routes_left_out_peers',
    help: 'Nodes with pods that cannot be reached from this one; the log names them and the reason.',
  });
  const wanted = new Gauge({
    ...common,
    name: 'nodeplane_routes_wanted',
    help: 'Pod ranges of other nodes that have a plan.',
  });
  const inKernel = new Gauge({
    ...common,
    name: 'nodeplane_routes_in_kernel',
    help: 'Pod ranges of other nodes that the kernel has taken routes for.',
  });
  const lastSync = new Gauge({
    ...common,
    name: 'nodeplane_routes_last_sync_timestamp_seconds',
    help: 'When the routes were last brought in line with the Nodes.',
  });
  const failures = new Counter({
    ...common,
    name: 'nodeplane_routes_sync_failures_total',
    help: 'Syncs of the routes that failed; each is tried again.',
  });
  const drifts = new Counter({
    ...common,
    name: 'nodeplane_routes_disturbances_total',
    help: 'Times that our routes, or links they need, were seen to change, and all of them compared and repaired.',
  });
  return (event) => {
    const labels = { ip_family: event.family };
    if (event.kind === 'syncFailed') failures.inc(labels);
    if (event.kind === 'disturbed' || event.kind === 'driftFound') drifts.inc(labels);
    if (event.kind !== 'synced') return;
    const { figures } = event;
    // The first step from nothing to 1 is no increase to Prometheus.
    for (const counter of [failures, drifts]) counter.inc(labels, 0);
    for (const way of ['direct', 'tunnel', 'wireguard'] as const) peers.set({ ...labels, way }, figures.peers[way]);
    leftOut.set(labels, figures.leftOut);
    wanted.set(labels, figures.wanted);
    inKernel.set(labels, figures.inKernel);
    lastSync.set(labels, clock.wallTime() / 1000);
  };
}
