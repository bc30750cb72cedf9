import { readFileSync } from 'node:fs';
import { NodeplaneError } from '../../core/index.ts';

/** linux/capability.h: those we may need, by their bits. */
const BITS = { DAC_OVERRIDE: 1n, NET_ADMIN: 12n, NET_RAW: 13n, SYS_ADMIN: 21n } as const;
/** The name of one of them, without CAP_. */
export type Capability = keyof typeof BITS;

/** Those in force for this process (CapEff of /proc/self/status, proc_pid_status(5)). */
export function ownCapabilities(): ReadonlySet<Capability> {
  return capabilitiesOf(readFileSync('/proc/self/status', 'utf8'));
}

/**
 * Refuses a process that may not do something, before the kernel says EPERM to a part of it.
 *
 * @param purpose `trace packets`
 * @param granted what this process may do. @default it looks
 * @throws ERR_CONFIG, with the missing capability among its facts
 */
export function needCapability(
  capability: Capability,
  purpose: string,
  granted: ReadonlySet<Capability> = ownCapabilities(),
): void {
  if (granted.has(capability)) return;
  const name = `CAP_${capability}`;
  throw new NodeplaneError('ERR_CONFIG', `Cannot ${purpose} without ${name}: run as root or grant the capability`, {
    facts: { capability: name },
  });
}

/** Exported for tests. */
export function capabilitiesOf(status: string): ReadonlySet<Capability> {
  const effective = BigInt(`0x${/^CapEff:\s*([0-9a-f]+)$/m.exec(status)?.[1] ?? '0'}`);
  const names = Object.keys(BITS) as Capability[];
  return new Set(names.filter((name) => ((effective >> BITS[name]) & 1n) === 1n));
}
