import type { GivenFields } from './file/config-file.ts';
import { HEALTHZ_PORT, METRICS_PORT, withDefaults } from './file/defaults.ts';
import { withValue } from './file/field-path.ts';
import { foldModes } from './file/fold-modes.ts';
import type { Configuration, FieldPath } from './file/schema.ts';
import { FLAG_NAMES, FLAGS, flagNamed } from './flags/flags.ts';
import type { GivenFlags } from './flags/parse-flags.ts';
import { appendPort } from './values/bind-address.ts';

/**
 * The configuration in effect: defaults, then the flags or the file, then what depends on the mode and the platform.
 *
 * With a file, the flags are as if they had not been given, but for the few marked `besideFile` in the table.
 *
 * @param file the fields of `--config`, undefined without it
 */
export function complete(flags: GivenFlags, file: GivenFields | undefined): Configuration {
  const configuration = file ? completeFile(flags, file) : completeFlags(flags);
  return foldModes(withPlatformDefaults(configuration));
}

function completeFile(flags: GivenFlags, file: GivenFields): Configuration {
  const configuration = applyFlags(withDefaults(file), flags, { besideFile: true });
  const vmodule = [...(flags.vmodule ?? []), ...withDefaults(file).logging.vmodule];
  return withValue(configuration, 'logging.vmodule', vmodule);
}

function completeFlags(flags: GivenFlags): Configuration {
  const configuration = applyFlags(withDefaults({}), flags, { besideFile: false });
  return withServerPorts(withFlagPeriods(configuration, flags), flags);
}

/** Whether somebody has said what a field is to be, by a flag that counts or in the file. */
export function isGiven(path: FieldPath, flags: GivenFlags, file: GivenFields | undefined): boolean {
  return isInFile(path, file) || isFlagged(path, flags, file);
}

/** Whether a field has the value that the file gives it: there is one, and no flag that beats it. */
export function isFromFile(path: FieldPath, flags: GivenFlags, file: GivenFields): boolean {
  return isInFile(path, file) && !isFlagged(path, flags, file);
}

function isInFile(path: FieldPath, file: GivenFields | undefined): boolean {
  return path.split('.').reduce<unknown>((at, key) => (at as GivenFields | undefined)?.[key], file) !== undefined;
}

/** Whether a flag says what it is to be; beside a file only some do. */
function isFlagged(path: FieldPath, flags: GivenFlags, file: GivenFields | undefined): boolean {
  return FLAG_NAMES.some((name) => {
    const { path: field, besideFile } = flagNamed(name);
    return field === path && flags[name] !== undefined && (!file || besideFile === true);
  });
}

/** Puts the values of flags into the fields they name; beside a file, only of those that count there. */
function applyFlags(
  configuration: Configuration,
  flags: GivenFlags,
  { besideFile }: { readonly besideFile: boolean },
): Configuration {
  let result = configuration;
  for (const name of FLAG_NAMES) {
    const { path, type, emptyIsUnset, ...spec } = flagNamed(name);
    const value = flags[name];
    if (path === undefined || value === undefined || (besideFile && !spec.besideFile)) continue;
    if (emptyIsUnset && type.isZero(value)) continue;
    result = withValue(result, path, value as never);
  }
  return flags['hostname-override']
    ? withValue(result, 'hostnameOverride', nodeNameOf(result.hostnameOverride))
    : result;
}

/**
 * The flags of sync periods and masquerading are called after iptables but mean the mode that runs. kube-proxy has only one
 * such set inside and fills it before it knows the mode; hence also the 1s of ipvs, where the file's default is 0s.
 */
function withFlagPeriods(configuration: Configuration, flags: GivenFlags): Configuration {
  const { iptables, ipvs, nftables, mode } = configuration;
  if (mode === 'ipvs') {
    return {
      ...configuration,
      ipvs: { ...ipvs, minSyncPeriod: flags['ipvs-min-sync-period'] ?? FLAGS['ipvs-min-sync-period'].fallback },
    };
  }
  const { syncPeriod, minSyncPeriod, masqueradeAll } = iptables;
  return mode === 'nftables'
    ? { ...configuration, nftables: { ...nftables, syncPeriod, minSyncPeriod, masqueradeAll } }
    : configuration;
}

/** The deprecated port flags count only for an address without a port, or if they are 0, which empties the address. */
function withServerPorts(configuration: Configuration, flags: GivenFlags): Configuration {
  // kube-proxy does not look at them when it only writes its configuration.
  const ports = flags['write-config-to'] ? {} : flags;
  const address = (text: string, given: number | undefined, fallback: number): string =>
    given === 0 ? '' : appendPort(text, given ?? fallback);
  return {
    ...configuration,
    healthzBindAddress: address(configuration.healthzBindAddress, ports['healthz-port'], HEALTHZ_PORT),
    metricsBindAddress: address(configuration.metricsBindAddress, ports['metrics-port'], METRICS_PORT),
  };
}

function withPlatformDefaults(configuration: Configuration): Configuration {
  const { mode, nodePortAddresses, detectLocalMode } = configuration;
  return {
    ...configuration,
    mode: mode || 'iptables',
    detectLocalMode: detectLocalMode || 'ClusterCIDR',
    nodePortAddresses: mode === 'nftables' && !nodePortAddresses?.length ? ['primary'] : nodePortAddresses,
  };
}

/** The name of a Node object as kube-proxy makes it of a host name. */
export function nodeNameOf(hostname: string): string {
  return hostname.trim().toLowerCase();
}
