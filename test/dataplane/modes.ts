import { describe } from 'vitest';
import type { IpFamily } from '../../src/core/index.ts';
import type { Protocol } from '../../src/kube/index.ts';
import { type KernelFeature, whyMissing } from './kernel-features.ts';

/** One way to make Services work. */
interface Mode {
  /** Flags of the agent. */
  readonly flags: readonly string[];
  /** What the kernel must have for it. */
  readonly needs: readonly KernelFeature[];
}

/** Every mode that the scenarios hold for. */
const MODES = {
  'iptables, nft variant': { flags: ['--iptables-variant', 'nft'], needs: ['iptables-nft'] },
  'iptables, legacy variant': { flags: ['--iptables-variant', 'legacy'], needs: ['iptables-legacy'] },
  nftables: { flags: ['--proxy-mode', 'nftables'], needs: ['nf_tables'] },
  ipvs: { flags: ['--proxy-mode', 'ipvs'], needs: ['IPVS', 'dummy', 'ip_set', 'iptables-nft'] },
} as const satisfies Record<string, Mode>;

export type ModeName = keyof typeof MODES;

/**
 * The agent's flags for a mode; undefined when this kernel cannot run it. Then the reason is printed and the mode is left
 * to the VM, whose kernel has everything.
 *
 * @throws when a mode cannot run in the VM: nothing may be tested nowhere
 */
export function flagsOf(name: ModeName): readonly string[] | undefined {
  const { flags, needs }: Mode = MODES[name];
  return isTestedHere(`Mode ${name}`, needs) ? flags : undefined;
}

/** The protocols to test on this kernel. Of SCTP, when it is missing, the reason is printed, or in the VM thrown. */
export function testedProtocols(): Protocol[] {
  return isTestedHere('SCTP', ['SCTP']) ? ['TCP', 'UDP', 'SCTP'] : ['TCP', 'UDP'];
}

/** Those of them by which a mode serves NodePorts at localhost. */
export function localhostProtocols(mode: ModeName, family: IpFamily): readonly Protocol[] {
  return mode === 'ipvs' || family === 'IPv6' ? ['TCP', 'UDP'] : ['TCP', 'UDP', 'SCTP'];
}

function isTestedHere(what: string, needs: readonly KernelFeature[]): boolean {
  const reasons = needs.map(whyMissing).filter((reason) => reason !== undefined);
  if (reasons.length === 0) return true;
  const why = reasons.join(', ');
  if (process.env.NODEPLANE_VM !== undefined) throw new Error(`${what} must be tested in the VM: ${why}`);
  process.stderr.write(`${what} is tested in the VM only (npm run test:vm): ${why}\n`);
  return false;
}

/** A `describe` for what is true in one mode, where `flagsOf` has flags for it; `define` gets them. */
export function describeMode(name: ModeName, define: (flags: readonly string[]) => void): void {
  const flags = flagsOf(name);
  if (flags) describe(name, () => define(flags));
}
