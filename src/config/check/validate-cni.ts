import { isAbsolute } from 'node:path';
import { addressBits, type Cidr, cidrsOverlap, formatCidr, specialRange } from '../../core/index.ts';
import { type CniSettings, MACVLAN_MODES, type MacvlanSettings } from '../file/kube-proxy-config.ts';
import type { Configuration } from '../file/schema.ts';
import type { Problems } from '../problems.ts';
import { readCidrs } from './validate-addresses.ts';

type CniSection = Configuration['nodeplane']['cni'];

/** struct sockaddr_un has room for 108 bytes with the final NUL. */
const LONGEST_SOCKET_PATH = 107;
/** Network address and gateway are no pod’s, with IPv4 the last one neither. */
const FEWEST_HOST_BITS = 2;
/** RFC 1123; `*` stands for every namespace. */
const NAMESPACE = /^([a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?|\*)$/;
/** IFNAMSIZ is 16 with the final NUL. */
const LINK_NAME = /^[^\s/:%]{1,15}$/;
/** A file's name. */
const PLUGIN_NAME = /^[a-zA-Z0-9][\w.-]*$/;

/** How the agent serves the container runtime; undefined when it has nothing to do with the pods' network. */
export function readCni(section: CniSection, problems: Problems): CniSettings | undefined {
  const { enabled, podCIDRs, macvlan, ...paths } = section;
  if (!enabled) return undefined;
  const podCidrs = readCidrs('nodeplane.cni.podCIDRs', podCIDRs ?? [], problems);
  checkPodCidrs(podCidrs, problems);
  for (const name of ['binDir', 'confDir', 'dataDir', 'socket', 'spoolDir', 'conflist'] as const) {
    const path = paths[name];
    if (path !== '' && !isAbsolute(path))
      problems.add(`nodeplane.cni.${name}`, `"${path}" is no absolute path: give one that begins with /`);
  }
  if (Buffer.byteLength(paths.socket) > LONGEST_SOCKET_PATH) {
    problems.add(
      'nodeplane.cni.socket',
      `"${paths.socket}" is longer than ${LONGEST_SOCKET_PATH} bytes, and a socket’s path cannot be: give a shorter one`,
    );
  }
  return { ...paths, podCidrs, macvlan: readMacvlan(macvlan, problems) };
}

/** As far as it can be told without the cluster. */
function checkPodCidrs(ranges: readonly Cidr[], problems: Problems): void {
  for (const [index, range] of ranges.entries()) {
    const refuse = (why: string) => problems.add('nodeplane.cni.podCIDRs', `"${formatCidr(range)}" ${why}`);
    const special = specialRange(range.address);
    if (special) refuse(`is ${special}, and such addresses are not for pods: give others`);
    else if (addressBits(range.address.family) - range.prefixLength < FEWEST_HOST_BITS)
      refuse('has no address for a pod beside that of the gateway: give a larger range');
    const other = ranges.slice(0, index).find((one) => cidrsOverlap(one, range));
    if (other) refuse(`overlaps "${formatCidr(other)}": leave one of them out`);
  }
}

function readMacvlan(section: CniSection['macvlan'], problems: Problems): MacvlanSettings | undefined {
  const namespaces = section.namespaces ?? [];
  const masters = section.masters ?? [];
  for (const namespace of namespaces.filter((name) => !NAMESPACE.test(name))) {
    problems.add(
      'nodeplane.cni.macvlan.namespaces',
      `"${namespace}" is no name of a namespace, and not "*": namespaces have small letters, digits and "-"`,
    );
  }
  for (const master of masters.filter((name) => !LINK_NAME.test(name))) {
    problems.add(
      'nodeplane.cni.macvlan.masters',
      `"${master}" is no name of an interface: "ip link" shows those of the node`,
    );
  }
  const settings = {
    namespaces,
    masters,
    mode: problems.oneOf('nodeplane.cni.macvlan.mode', section.mode, MACVLAN_MODES),
    ipam: readIpam(section.ipam, problems),
    routes: readCidrs('nodeplane.cni.macvlan.routes', section.routes ?? [], problems),
  };
  return namespaces.length > 0 ? settings : undefined;
}

function readIpam(text: string, problems: Problems): MacvlanSettings['ipam'] {
  if (text === '') return undefined;
  try {
    const ipam = JSON.parse(text) as { readonly type?: unknown } | null;
    if (typeof ipam === 'object' && typeof ipam?.type === 'string' && PLUGIN_NAME.test(ipam.type)) {
      return ipam as NonNullable<MacvlanSettings['ipam']>;
    }
  } catch {
    // Told below, as any other text that is none.
  }
  problems.add('nodeplane.cni.macvlan.ipam', `"${text}" is no JSON object with a "type", such as {"type":"dhcp"}`);
  return undefined;
}
