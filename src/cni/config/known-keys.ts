import { isMapping } from '../../core/index.ts';
import { IPAM_KEYS } from '../../ipam/index.ts';
import { modeRules } from '../pod-networks.ts';
import type { Json } from '../protocol/json.ts';
import { BRIDGE_KEYS } from './bridge-config.ts';
import { parseCniArgs } from './cni-args.ts';
import { NETWORK_KEYS } from './config.ts';
import { FEATURE_KEYS } from './feature-config.ts';
import { POD_ANNOTATIONS } from './macvlan-config.ts';
import type { NetworkConfig } from './network-config.ts';
import { CAPABILITIES, runtimeConfigOf } from './runtime-config.ts';

/** Keys of the protocol itself. */
const PROTOCOL_KEYS = ['cniVersion', 'name', 'type', 'capabilities', 'args', 'runtimeConfig', 'prevResult'];
/** Of the reference plugins: choices that are not left here. */
const WITHOUT_EFFECT = [
  'ipMasqBackend',
  'backend',
  'firewalldZone',
  'iptablesAdminChainName',
  'externalSetMarkChain',
  'markMasqBit',
];
/** Capabilities that others are for, and that a runtime may pass to every plugin of a list. */
const FOREIGN_CAPABILITIES = ['aliases', 'cgroupPath', 'deviceID', 'infinibandGUID'];

/**
 * Reports keys that ask for something this plugin does not do. The specification forbids to refuse them: the plugin may
 * be older than the configuration.
 */
export function warnOfUnknownKeys(raw: Json, { mode, ipam }: NetworkConfig, warn: (message: string) => void): void {
  const known: readonly string[] = [...PROTOCOL_KEYS, ...NETWORK_KEYS, ...BRIDGE_KEYS, ...FEATURE_KEYS];
  const { unusedKeys, whyUnused } = modeRules(mode);
  for (const key of Object.keys(raw)) {
    if (WITHOUT_EFFECT.includes(key)) warn(`Key "${key}" has no effect: rules are made by nftables, over netlink`);
    else if (!known.includes(key) && !key.startsWith('cni.dev/')) warn(`Key "${key}" is not known and has no effect`);
    else if (unusedKeys.includes(key)) warn(`Key "${key}" has no effect in mode "${mode}", ${whyUnused}`);
  }
  if (ipam.kind === 'native' && isMapping(raw.ipam)) {
    for (const key of Object.keys(raw.ipam)) {
      if (!(IPAM_KEYS as readonly string[]).includes(key)) warn(`Key "ipam.${key}" is not known and has no effect`);
    }
  }
  if (!isMapping(raw.runtimeConfig)) return;
  const served = [...CAPABILITIES, ...FOREIGN_CAPABILITIES].map((key) => key.toLowerCase());
  for (const key of Object.keys(raw.runtimeConfig)) {
    if (!served.includes(key.toLowerCase())) warn(`Capability "${key}" is not known and has no effect`);
  }
}

/** Reports to ADD that pods cannot ask for a second interface: the runtime names the pod, and does not pass its annotations. */
export function warnOfLackingAnnotations(
  raw: Json,
  cniArgs: string | undefined,
  warn: (message: string) => void,
): void {
  if (!isMapping(raw.macvlan) || !parseCniArgs(cniArgs).pod || POD_ANNOTATIONS in runtimeConfigOf(raw)) return;
  warn(
    `Key "macvlan" has no effect: the runtime passes no annotations of pods. It has to be containerd 1.5 or CRI-O 1.29, or newer, and the list has to declare the capability "${POD_ANNOTATIONS}"`,
  );
}
