import type { InterfaceName } from './environment.ts';
import { CNI_ERROR, CniError } from './errors.ts';
import type { NetworkHeader } from './header.ts';
import { parseResult } from './parse-result.ts';
import type { CniResult } from './result.ts';

/**
 * The result of the plugins before this one in a list; undefined when it is the first.
 *
 * @throws CniError 7 when it cannot be read, or when a plugin before this one made the interface already: this plugin makes
 *   one and must come before those that change it
 */
export function previousResult({ raw, cniVersion }: NetworkHeader, ifname: InterfaceName): CniResult | undefined {
  if (raw.prevResult === undefined || raw.prevResult === null) return undefined;
  const previous = parseResult(raw.prevResult, cniVersion, 'prevResult');
  if (previous.interfaces.some(({ name, sandbox }) => name === ifname && sandbox)) {
    throw new CniError(
      CNI_ERROR.INVALID_NETWORK_CONFIG,
      `Cannot make "${ifname}": a plugin before this one in the list made it already; put this one first, or remove the other`,
    );
  }
  return previous;
}

/** The result of a list so far and of this plugin as one. */
export function appendResult(previous: CniResult | undefined, own: CniResult): CniResult {
  if (!previous) return own;
  const before = previous.interfaces.length;
  return {
    interfaces: [...previous.interfaces, ...own.interfaces],
    ips: [
      ...previous.ips,
      ...own.ips.map((ip) => (ip.interface === undefined ? ip : { ...ip, interface: ip.interface + before })),
    ],
    routes: [...previous.routes, ...own.routes],
    dns: Object.keys(own.dns).length > 0 ? own.dns : previous.dns,
  };
}
