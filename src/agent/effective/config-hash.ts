import { createHash } from 'node:crypto';
import { Gauge, type Registry } from 'prom-client';
import { type KubeProxyConfig, writeConfigz } from '../../config/index.ts';
import { compareText, isMapping } from '../../core/index.ts';

const SHOWN_DIGITS = 12;

/**
 * A hash of all settings in force, equal on nodes with equal settings: without the node's name and address. The settings hold
 * no secrets, only where they are.
 *
 * @returns 12 hexadecimal digits
 */
export function configHash({ effective, apiServer, nodeIp }: KubeProxyConfig): string {
  const settings = { ...effective, hostnameOverride: '', bindAddress: nodeIp ? nodeIp.family : effective.bindAddress };
  const text = writeConfigz(settings, 'nodeplane agent');
  // The order of keys in a map says nothing.
  const ordered = JSON.stringify([apiServer.master, JSON.parse(text)], (_key, value: unknown) =>
    isMapping(value) ? Object.fromEntries(Object.entries(value).sort(([a], [b]) => compareText(a, b))) : value,
  );
  return createHash('sha256').update(ordered).digest('hex').slice(0, SHOWN_DIGITS);
}

/** Shows the hash as a metric with one series. */
export function registerConfigHash(registry: Registry, config: KubeProxyConfig): void {
  new Gauge({
    name: 'nodeplane_config_hash_info',
    help: 'Always 1; the label is a hash of the settings in force, the same on all nodes that have the same settings.',
    labelNames: ['hash'],
    registers: [registry],
  }).set({ hash: configHash(config) }, 1);
}
