import { type ComparedPart, type Drift, NodeplaneError } from '../../core/index.ts';
import { readSysctl, writeSysctl } from '../../sys/index.ts';
import { readIfThere, sysctlDrift } from './conntrack/sysctl-drift.ts';
import type { ConntrackSettings } from './conntrack/sysctls.ts';
import { applyConntrackSettings, conntrackDrift } from './conntrack/sysctls.ts';

/**
 * The sysctls of the node that the agent set when it began: limits and timeouts of connection tracking, and what the mode needs. Nobody
 * hears of their changes, so they are looked at when somebody asks.
 */
export class NodeSettings implements ComparedPart {
  readonly name = 'settings of the node';
  readonly #conntrack: ConntrackSettings;
  readonly #ofMode: Readonly<Record<string, number>>;

  /** @param ofMode what the mode sets, by name */
  constructor(conntrack: ConntrackSettings, ofMode: Readonly<Record<string, number>>) {
    this.#conntrack = conntrack;
    this.#ofMode = ofMode;
  }

  /** Rejects with KernelError. */
  async compare(): Promise<readonly Drift[]> {
    const ofMode = Object.entries(this.#ofMode).flatMap(([name, value]) => {
      const present = readIfThere(() => readSysctl(name));
      return present === undefined || present === String(value) ? [] : [sysctlDrift(name, value, present)];
    });
    return [...ofMode, ...conntrackDrift(this.#conntrack)];
  }

  /** Rejects with KernelError, or ERR_DIFF with what keeps connection tracking from being set up. */
  async repair(): Promise<void> {
    for (const [name, value] of Object.entries(this.#ofMode)) {
      if (readIfThere(() => readSysctl(name)) !== undefined) writeSysctl(name, value);
    }
    const { warnings } = applyConntrackSettings(this.#conntrack);
    if (warnings.length > 0) throw new NodeplaneError('ERR_DIFF', warnings.join('. '));
  }
}
