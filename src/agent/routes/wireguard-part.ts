import { Counter, Gauge, type Registry } from 'prom-client';
import type { RoutesConfig } from '../../config/index.ts';
import { type Clock, driftText } from '../../core/index.ts';
import { Nftables } from '../../netlink/nftables/index.ts';
import {
  keyOfFile,
  NetlinkWireguardKernel,
  tunnelKind,
  WIREGUARD_NAME,
  type WireguardEvent,
  WireguardTunnel,
  wireguardAnnotations,
} from '../../routes/index.ts';
import type { Logger } from '../logger.ts';
import { registerEncryptionMetrics } from './encryption-metrics.ts';

export interface WireguardPartOptions {
  readonly config: RoutesConfig;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly registry: Registry;
  /** Tells the other nodes. */
  readonly announce: (annotations: Readonly<Record<string, string>>) => void;
}

/** The WireGuard device's key and peers, with log and metrics; undefined where the routes need none. */
export function wireguardPart(
  options: WireguardPartOptions,
): { tunnel: WireguardTunnel; stop(): Promise<void> } | undefined {
  const { config, clock, logger, registry, announce } = options;
  if (tunnelKind(config) !== 'wireguard') return undefined;
  const { port, keepaliveSeconds, keyFile } = config.wireguard;
  const log = logWireguardEvents(logger);
  const count = wireguardMetrics(registry);
  registerEncryptionMetrics(registry, () => Nftables.open());
  const kernel = new NetlinkWireguardKernel();
  const tunnel = new WireguardTunnel({
    readKey: () => keyOfFile(keyFile),
    port,
    keepaliveSeconds,
    mtu: config.mtu,
    kernel,
    clock,
    observe: (event) => {
      log(event);
      count(event);
      if (event.kind === 'keyInForce') announce(wireguardAnnotations(event.publicKey, port));
    },
  });
  return {
    tunnel,
    async stop() {
      await tunnel.stop();
      kernel.close();
    },
  };
}

/** Writes into the log what becomes of the device's key and peers. No private key is ever in an event. */
function logWireguardEvents(logger: Logger): (event: WireguardEvent) => void {
  return (event) => {
    const device = WIREGUARD_NAME;
    switch (event.kind) {
      case 'synced': {
        const { full, seconds, changes, peers } = event;
        logger[changes > 0 || full ? 'info' : 'debug']({ device, full, seconds, changes, peers }, 'WireGuard synced');
        break;
      }
      case 'syncFailed': {
        const { error, retryInMs } = event;
        logger.error(
          { device, retryInMs, err: error },
          'WireGuard cannot be set up; what it was before stays in force',
        );
        break;
      }
      case 'keyInForce': {
        const publicKey = Buffer.from(event.publicKey).toString('base64');
        logger.info({ device, publicKey }, 'WireGuard has its key; the annotations of our Node tell it to the others');
        break;
      }
      case 'keyFailed':
        logger.error({ device, err: event.error }, 'The key file cannot be used; the key before stays in force');
        break;
      case 'refused': {
        const { name: node, reason } = event;
        if (reason === undefined) logger.info({ device, node }, 'The Node is a WireGuard peer after all');
        else logger.warn({ device, node, reason }, 'The pods of a Node cannot be reached from here; all others can');
        break;
      }
      case 'driftFound': {
        const { drifts } = event;
        const count = drifts.length;
        logger.warn(
          { device, drifts: drifts.slice(0, 20).map(driftText), count },
          'Somebody changed our WireGuard device; repairing',
        );
        break;
      }
      case 'verifyFailed':
        logger.warn({ device, err: event.error }, 'The WireGuard device could not be compared');
    }
  };
}

function wireguardMetrics(registry: Registry): (event: WireguardEvent) => void {
  const registers = [registry];
  const peers = new Gauge({
    name: 'nodeplane_routes_wireguard_peers',
    help: 'Nodes that the WireGuard device has as peers.',
    registers,
  });
  const failures = new Counter({
    name: 'nodeplane_routes_wireguard_sync_failures_total',
    help: 'Times that key or peers could not be written to the WireGuard device; each is tried again.',
    registers,
  });
  const drifts = new Counter({
    name: 'nodeplane_routes_wireguard_disturbances_total',
    help: 'Times that the WireGuard device was found changed by somebody else, and mended.',
    registers,
  });
  return (event) => {
    if (event.kind === 'synced') peers.set(event.peers);
    if (event.kind === 'syncFailed') failures.inc();
    if (event.kind === 'driftFound') drifts.inc();
  };
}
