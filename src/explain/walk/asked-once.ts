import type { Packet } from '../packet/index.ts';
import type { Host } from './source.ts';

/** The same host, which is asked everything once: a walk is begun anew for each way through the rules. */
export function askedOnce(host: Host): Host {
  const answers = new Map<string, unknown>();
  const once = <T>(question: string, ask: () => T): T => {
    if (!answers.has(question)) answers.set(question, ask());
    return answers.get(question) as T;
  };
  const { bridgePort, switchedBy } = host;
  return {
    addressType: (address, on) => once(`type ${address.text} ${on?.index}`, () => host.addressType(address, on)),
    interfaceTo: (packet, which) => once(`to ${which} ${packet.state}`, () => host.interfaceTo(packet, which)),
    addressOn: (oif, packet) => once(`on ${oif.index} ${packet.state}`, () => host.addressOn(oif, packet)),
    redirectedTo: (iif, family) => once(`redirected ${iif.index} ${family}`, () => host.redirectedTo(iif, family)),
    routesByClass: (family) => once(`class ${family}`, () => host.routesByClass?.(family) ?? false),
    ...(switchedBy && {
      switchedBy: (packet: Packet) => once(`switched ${packet.state}`, () => switchedBy.call(host, packet)),
    }),
    ...(bridgePort && {
      bridgePort: (packet: Packet, direction: 'in' | 'out') =>
        once(`port ${direction} ${packet.state}`, () => bridgePort.call(host, packet, direction)),
    }),
  };
}
