import { readFileSync } from 'node:fs';
import { NodeplaneError } from '../../core/index.ts';

/** linux/capability.h: those the agent may need, by their bits. */
const BITS = { DAC_OVERRIDE: 1n, NET_ADMIN: 12n, NET_RAW: 13n, SYS_ADMIN: 21n } as const;
export type Capability = keyof typeof BITS;

/** Those in force for this process (CapEff of /proc/self/status, proc_pid_status(5)). */
export function ownCapabilities(): ReadonlySet<Capability> {
  return capabilitiesOf(readFileSync('/proc/self/status', 'utf8'));
}

/**
 * Refuses a process that may not change packet rules. It may not read them either: without this it would take what is there for
 * nothing.
 *
 * @param isGranted whether this process has CAP_NET_ADMIN. @default it looks
 * @throws ERR_CONFIG without it
 */
export function needNetAdmin(isGranted: boolean = ownCapabilities().has('NET_ADMIN')): void {
  if (isGranted) return;
  throw new NodeplaneError(
    'ERR_CONFIG',
    'Cannot change packet rules without CAP_NET_ADMIN: run as root or grant the capability',
  );
}

/** Exported for tests. */
export function capabilitiesOf(status: string): ReadonlySet<Capability> {
  const effective = BigInt(`0x${/^CapEff:\s*([0-9a-f]+)$/m.exec(status)?.[1] ?? '0'}`);
  const names = Object.keys(BITS) as Capability[];
  return new Set(names.filter((name) => ((effective >> BITS[name]) & 1n) === 1n));
}
