import { execFileSync } from 'node:child_process';
import { release } from 'node:os';
import { createNamespace } from '../lab/namespace.ts';

/** What tests need of the kernel (and of the programs that belong to it), tried out once in a namespace of its own. */
const PROBES = {
  nf_tables: ['nft', 'add', 'table', 'inet', 'probe'],
  'iptables-nft': ['iptables-nft', '-t', 'nat', '-L'],
  'iptables-legacy': ['iptables-legacy', '-t', 'nat', '-L'],
  ip_set: ['ipset', 'create', 'probe', 'hash:ip,port'],
  IPVS: ['ipvsadm', '-A', '-t', '192.0.2.1:80'],
  dummy: ['ip', 'link', 'add', 'probe', 'type', 'dummy'],
  SCTP: ['ls', '/proc/net/sctp'],
} as const;

export type KernelFeature = keyof typeof PROBES;
export const KERNEL_FEATURES = Object.keys(PROBES) as KernelFeature[];

/** Modules that nothing asks for by itself: what they bring does not exist until somebody loads them. */
const MODULES: Partial<Record<KernelFeature, string>> = { IPVS: 'ip_vs', SCTP: 'sctp' };

const answers = new Map<KernelFeature, string | undefined>();

/** Why the feature cannot be used on this machine, in one line; undefined when it can. Modules are loaded if need be. */
export function whyMissing(feature: KernelFeature): string | undefined {
  if (!answers.has(feature)) answers.set(feature, probe(feature));
  return answers.get(feature);
}

function probe(feature: KernelFeature): string | undefined {
  const module = MODULES[feature];
  if (module !== undefined) quietly('modprobe', ['--quiet', module]);
  const namespace = createNamespace('probe');
  const [program, ...args] = PROBES[feature];
  try {
    namespace.run(program, ...args);
    return undefined;
  } catch (error) {
    const [reason] = String((error as { stderr?: unknown }).stderr || error).split('\n');
    return `kernel ${release()} has no ${feature} (${reason})`;
  } finally {
    namespace.remove();
  }
}

function quietly(program: string, args: readonly string[]): void {
  try {
    execFileSync(program, args, { stdio: 'ignore' });
  } catch {
    // The probe itself tells.
  }
}
