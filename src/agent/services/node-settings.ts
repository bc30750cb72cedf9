import { type ComparedPart, type Drift, errorText, ifPresent, NodeplaneError } from '../../core/index.ts';
import { readSysctl, writeSysctl } from '../../sys/index.ts';
import { sysctlDrift } from './conntrack/sysctl-drift.ts';
import { applyConntrackSettings, type ConntrackSettings, conntrackDrift } from './conntrack/sysctls.ts';

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
      const present = ifPresent(() => readSysctl(name));
      return present === undefined || present === String(value) ? [] : [sysctlDrift(name, value, present)];
    });
    return [...ofMode, ...conntrackDrift(this.#conntrack)];
  }

  /** Each is tried, whatever becomes of the others. Rejects with ERR_DIFF and all that could not be set. */
  async repair(): Promise<void> {
    const refused = Object.entries(this.#ofMode).flatMap(([name, value]) => {
      try {
        ifPresent(() => writeSysctl(name, value));
        return [];
      } catch (error) {
        return [errorText(error)];
      }
    });
    const { warnings } = applyConntrackSettings(this.#conntrack);
    const problems = [...refused, ...warnings];
    if (problems.length > 0) throw new NodeplaneError('ERR_DIFF', problems.join('. '));
  }
}
