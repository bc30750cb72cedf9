import { createHash } from 'node:crypto';
import { protocolWord } from '../../../core/index.ts';
import type { ServicePortPlan } from '../../index.ts';

/** Our table, one of this name in each family. */
export const TABLE_NAME = 'nodeplane';

/** kube-proxy's table: taken over, and removed by the clean-up. */
export const KUBE_PROXY_TABLE = 'kube-proxy';

/** The maps and sets every table of ours has. */
export const SETS = {
  services: 'services',
  nodePorts: 'nodeports',
  endpoints: 'endpoints',
  localEndpoints: 'local-endpoints',
  nodePortEndpoints: 'nodeport-endpoints',
  nodePortLocalEndpoints: 'nodeport-local-endpoints',
  shortCircuit: 'short-circuit',
  nodePortShortCircuit: 'nodeport-short-circuit',
  noEndpointServices: 'no-endpoint-services',
  noEndpointNodePorts: 'no-endpoint-nodeports',
  restrictedVips: 'restricted-vips',
  allowedSources: 'allowed-sources',
  clusterIps: 'cluster-ips',
  nodePortIps: 'nodeport-ips',
} as const;

/** The name of one of them, in the kernel too. */
export type FixedSetName = (typeof SETS)[keyof typeof SETS];

/** A kind of chain there is one of for each number of slots in use: `external-4` sends on to one of four, or of three. */
export type BalanceKind = 'endpoints' | 'external' | 'local' | 'nodeport-endpoints' | 'nodeport' | 'nodeport-local';

/** See `slotCapacity`; no Service has a million endpoints. */
const POSSIBLE_SLOTS: ReadonlySet<number> = new Set([0, ...Array.from({ length: 20 }, (_, power) => 2 ** power)]);

/** `external-4`; see `BalanceKind`. */
export function balanceChainName(kind: BalanceKind, slots: number): string {
  return `${kind}-${slots}`;
}

/** The kind and the slots of a balancing chain by its name; undefined for other chains. */
export function parseBalanceChainName(name: string): { kind: BalanceKind; slots: number } | undefined {
  const [, kind, slots] = /^((?:nodeport-)?(?:endpoints|local)|external|nodeport)-(\d+)$/.exec(name) ?? [];
  if (kind === undefined || !POSSIBLE_SLOTS.has(Number(slots))) return undefined;
  return { kind: kind as BalanceKind, slots: Number(slots) };
}

/** The maps by which a Service port with ClientIP affinity balances. */
export interface StickyMaps {
  /** Slot to endpoint. */
  readonly endpoints: string;
  /** The same with the protocol before the endpoint, for those to be remembered. */
  readonly choices: string;
  /** Client address to the endpoint it keeps. */
  readonly affinity: string;
}

/** What a Service port with ClientIP affinity has of its own: a chain and maps for each policy, and one chain more. */
export interface StickyNames {
  /** For external destinations: decides about masquerading, and between the two below. */
  readonly external: string;
  readonly cluster: StickyMaps & { readonly chain: string };
  readonly local: StickyMaps & { readonly chain: string };
}

/** What the names are made of. */
type NamedPort = Pick<ServicePortPlan, 'serviceName' | 'name' | 'protocol'>;

/** Kernel names have at most 255 bytes (NFT_NAME_MAXLEN); what is longer than Kubernetes allows is cut and hashed. */
const MAX_PORT_NAME = 200;

/** All that a Service port with ClientIP affinity has of its own, by the port: nothing else goes into the names. */
export function stickyNames(port: NamedPort): StickyNames {
  const own = portName(port);
  const names = (policy: '' | 'local-') => ({
    chain: `sticky-${policy}${own}`,
    endpoints: `${policy}endpoints-${own}`,
    choices: `${policy}choices-${own}`,
    affinity: `${policy}affinity-${own}`,
  });
  return { external: `sticky-external-${own}`, cluster: names(''), local: names('local-') };
}

/** `shop/web/tcp/http`, or `shop/web/tcp` for an unnamed port; unique because names have no slash. */
function portName({ serviceName, name, protocol }: NamedPort): string {
  const portPart = name.slice(serviceName.length + 1);
  const text = [serviceName, protocolWord(protocol), ...(portPart === '' ? [] : [portPart])].join('/');
  if (Buffer.byteLength(text) <= MAX_PORT_NAME) return text;
  return `${text.slice(0, MAX_PORT_NAME / 4)}...${createHash('sha256').update(text).digest('hex').slice(0, 32)}`;
}
