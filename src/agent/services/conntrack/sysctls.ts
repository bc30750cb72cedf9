import { cpus } from 'node:os';
import { type Drift, describeErrno, errorText, ifPresent, KernelError } from '../../../core/index.ts';
import { readSysctl, writeSysctl } from '../../../sys/index.ts';
import { sysctlDrift } from './sysctl-drift.ts';

/** How large the table of tracked flows is and how long they live; what is undefined, 0 or false is left as it is. */
export interface ConntrackSettings {
  /** Flows for each CPU. 0 leaves the size alone, `min` as well. */
  readonly maxPerCore?: number | undefined;
  /** At least as many flows altogether. */
  readonly min?: number | undefined;
  readonly tcpEstablishedTimeoutMs?: number | undefined;
  readonly tcpCloseWaitTimeoutMs?: number | undefined;
  readonly udpTimeoutMs?: number | undefined;
  readonly udpStreamTimeoutMs?: number | undefined;
  /** Let TCP packets outside the window pass. */
  readonly tcpBeLiberal?: boolean | undefined;
  /** Also make a table smaller that somebody made larger. @default false */
  readonly mayLowerMax?: boolean | undefined;
}

/** The kernel's side, by name below net/netfilter; a fake in tests. All throw KernelError. */
export interface ConntrackKernel {
  read(name: string): string;
  write(name: string, value: number): void;
}

/** What was changed, and what could not be: sentences for the log. */
export interface ConntrackOutcome {
  /** `nf_conntrack_max=524288` */
  readonly written: readonly string[];
  readonly warnings: readonly string[];
}

/** kube-proxy's ceiling for what follows from the number of CPUs. */
const MAX_FROM_CPUS = 1_048_576;
/** How many flows share a bucket of the hash table when it is full. */
const FLOWS_PER_BUCKET = 4;

/** The number of flows wanted; undefined to leave it alone. Unlike kube-proxy's, the ceiling never undercuts `min`. */
export function wantedMax({ maxPerCore = 0, min = 0 }: ConntrackSettings, cpuCount: number): number | undefined {
  return maxPerCore > 0 ? Math.max(min, Math.min(maxPerCore * cpuCount, MAX_FROM_CPUS)) : undefined;
}

/** The settings other than the size, by sysctl name: whole seconds, at least one. */
export function wantedSysctls(settings: ConntrackSettings): ReadonlyMap<string, number> {
  const timeouts: Readonly<Record<string, number | undefined>> = {
    nf_conntrack_tcp_timeout_established: settings.tcpEstablishedTimeoutMs,
    nf_conntrack_tcp_timeout_close_wait: settings.tcpCloseWaitTimeoutMs,
    nf_conntrack_udp_timeout: settings.udpTimeoutMs,
    nf_conntrack_udp_timeout_stream: settings.udpStreamTimeoutMs,
  };
  const wanted = new Map<string, number>();
  for (const [name, milliseconds = 0] of Object.entries(timeouts)) {
    if (milliseconds > 0) wanted.set(name, Math.max(1, Math.floor(milliseconds / 1000)));
  }
  if (settings.tcpBeLiberal) wanted.set('nf_conntrack_tcp_be_liberal', 1);
  return wanted;
}

/**
 * Brings the kernel's settings in line, each one only if it differs.
 *
 * What cannot be set is a warning that says what to do, because Services work without it: kube-proxy exits instead,
 * again and again on a node where nf_conntrack is loaded only by its own first rule. A table that is larger than asked
 * for stays so (see `mayLowerMax`): whoever enlarged it had a reason.
 *
 * @param cpuCount CPUs of the machine, not of a container's share of it
 */
export function applyConntrackSettings(
  settings: ConntrackSettings,
  kernel: ConntrackKernel = realKernel,
  cpuCount: number = cpus().length,
): ConntrackOutcome {
  const written: string[] = [];
  const refused: Refused[] = [];
  const attempt = (setting: string, change: () => boolean): void => {
    try {
      if (change()) written.push(setting);
    } catch (error) {
      refused.push({ setting, error });
    }
  };
  for (const { name, value, differs } of conntrackSettings(settings, cpuCount)) {
    attempt(`${name}=${value}`, () => {
      if (!differs(Number(kernel.read(name)))) return false;
      kernel.write(name, value);
      return true;
    });
  }
  return { written, warnings: warningsOf(refused) };
}

/** A sysctl below net/netfilter that is to have a value. */
interface ConntrackSetting {
  readonly name: string;
  readonly value: number;
  /** Whether what the kernel has has to be changed. */
  readonly differs: (present: number) => boolean;
}

function conntrackSettings(settings: ConntrackSettings, cpuCount: number): ConntrackSetting[] {
  const wanted: ConntrackSetting[] = [];
  const max = wantedMax(settings, cpuCount);
  if (max !== undefined) {
    const differs = (present: number) => (settings.mayLowerMax ? present !== max : present < max);
    wanted.push({ name: 'nf_conntrack_max', value: max, differs });
    // The module's parameter hashsize by another name: it is below /proc/sys, which a container can be given to write.
    const buckets = Math.floor(max / FLOWS_PER_BUCKET);
    wanted.push({ name: 'nf_conntrack_buckets', value: buckets, differs: (present) => present < buckets });
  }
  for (const [name, value] of wantedSysctls(settings)) {
    wanted.push({ name, value, differs: (present) => present !== value });
  }
  return wanted;
}

/**
 * The sysctls that `applyConntrackSettings` would change, by their whole name. What the kernel does not have, because it does not track
 * connections yet, is left out. Throws KernelError.
 */
export function conntrackDrift(settings: ConntrackSettings): Drift[] {
  return conntrackSettings(settings, cpus().length).flatMap(({ name, value, differs }) => {
    const present = ifPresent(() => realKernel.read(name));
    return present !== undefined && differs(Number(present))
      ? [sysctlDrift(`net/netfilter/${name}`, value, present)]
      : [];
  });
}

const realKernel: ConntrackKernel = {
  read: (name) => readSysctl(`net/netfilter/${name}`),
  write: (name, value) => void writeSysctl(`net/netfilter/${name}`, value),
};

interface Refused {
  readonly setting: string;
  readonly error: unknown;
}

const READ_ONLY =
  'this process may not write them: run it with --init-only first, in a container that can (deploy/base; delete this pod, so that its init container runs again), or set them on the host';

/** What to do, by errno. */
const REMEDIES: Readonly<Record<string, string>> = {
  ENOENT: 'nf_conntrack is not loaded: run "modprobe nf_conntrack" on the host and restart',
  EROFS: READ_ONLY,
  EACCES: READ_ONLY,
  EPERM: READ_ONLY,
};

/** One sentence for each reason, however many settings it concerns. */
function warningsOf(refused: readonly Refused[]): string[] {
  const settings = new Map<string, string[]>();
  for (const { setting, error } of refused) {
    const reason = reasonOf(error);
    settings.set(reason, [...(settings.get(reason) ?? []), `"${setting}"`]);
  }
  return [...settings].map(([reason, names]) => `Cannot set ${names.join(', ')}: ${reason}`);
}

function reasonOf(error: unknown): string {
  if (!(error instanceof KernelError)) return errorText(error);
  const { name, text } = describeErrno(error.errno);
  const remedy = REMEDIES[name];
  return `${text} (${name})${remedy ? `; ${remedy}` : ''}`;
}
