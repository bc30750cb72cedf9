import { readFileSync } from 'node:fs';

/** linux/capability.h: those the agent may need, by their bits. */
const BITS = { DAC_OVERRIDE: 1n, NET_ADMIN: 12n, NET_RAW: 13n, SYS_ADMIN: 21n } as const;
export type Capability = keyof typeof BITS;

/** Those in force for this process (CapEff of /proc/self/status, proc_pid_status(5)). */
export function ownCapabilities(): ReadonlySet<Capability> {
  return capabilitiesOf(readFileSync('/proc/self/status', 'utf8'));
}

/** Exported for tests. */
export function capabilitiesOf(status: string): ReadonlySet<Capability> {
  const effective = BigInt(`0x${/^CapEff:\s*([0-9a-f]+)$/m.exec(status)?.[1] ?? '0'}`);
  const names = Object.keys(BITS) as Capability[];
  return new Set(names.filter((name) => ((effective >> BITS[name]) & 1n) === 1n));
}
