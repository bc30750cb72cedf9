import { cidrEquals, formatCidr, formatIp, formatMac, ipEquals } from '../../core/index.ts';
import { addressesHeld } from '../../ipam/index.ts';
import { closing, type Netlink, withNetlink } from '../../netlink/index.ts';
import { getLink, type Link, listAddresses, listRoutes } from '../../netlink/route/index.ts';
import { IFA_F_DADFAILED, NETLINK_ROUTE } from '../../netlink/uapi/index.ts';
import { readSysctl } from '../../sys/index.ts';
import { parseNetworkConfig } from '../config/config.ts';
import { FEATURES, type FeatureEntry } from '../features/index.ts';
import type { Checking } from '../link/checking.ts';
import { openPodNamespace } from '../link/pod-namespace.ts';
import { UndoStack } from '../link/undo.ts';
import { podNetwork } from '../pod-networks.ts';
import { type AttachmentKey, attachmentKey } from '../protocol/attachment-key.ts';
import { readAttachment } from '../protocol/environment.ts';
import { CNI_ERROR, CniError } from '../protocol/errors.ts';
import { invalidConfig, type Json } from '../protocol/json.ts';
import { parseResult } from '../protocol/parse-result.ts';
import type { CniResult, ResultIp } from '../protocol/result.ts';
import type { VerbRequest } from './request.ts';
import { wantedAttachment, wantedFeatures } from './wanted-features.ts';

/**
 * CHECK: compares what the kernel and the records hold with the result of the ADD. Changes nothing. Not compared is what
 * others may change with good reason: the MACs on the host, MTUs, further addresses and routes.
 *
 * @throws CniError 108 with all that differs; 7 without `prevResult`; 4 and 8 for the namespace
 */
export async function check({ header, env, netns, warn }: VerbRequest): Promise<undefined> {
  const config = parseNetworkConfig({ ...header, raw: withoutMoreInterfaces(header.raw) }, env.CNI_ARGS);
  const environment = readAttachment(env, netns);
  if (!header.raw.prevResult) throw invalidConfig('Cannot check an attachment: key "prevResult" is missing');
  const previous = parseResult(header.raw.prevResult, header.cniVersion, 'prevResult');
  const key = attachmentKey(config.name, environment);
  const differences: string[] = [];
  const pod = openPodNamespace(environment);
  const compare = async (host: Netlink) => {
    const ips = ipsOf(previous, key);
    const checking = { config, key, pod, host, previous, ips, differ: (what: string) => void differences.push(what) };
    const { hostLink, mac } = checkPod(checking);
    const gateway = hostLink && (await checkHost(checking, hostLink));
    for (const entry of moreInterfaces(previous)) (await entry.load()).checkInterface?.(checking);
    checkRecords(checking);
    if (!hostLink) return;
    const undo = new UndoStack();
    const context = { ...wantedAttachment(config, key, ips, mac), host, hostLink, gateway, undo, warn };
    for (const entry of wantedFeatures(config, key)) differences.push(...(await entry.load()).check(context));
  };
  await closing(pod, () => withNetlink(NETLINK_ROUTE, compare));
  if (differences.length > 0) {
    throw new CniError(
      CNI_ERROR.CHECK_FAILED,
      `Attachment "${key.alias}" is not as ADD made it: ${differences.join('; ')}`,
    );
  }
  if (config.ipam.kind === 'delegate') {
    await (await import('./delegate.ts')).askDelegate('CHECK', config.ipam.type, header, env);
  }
}

/** The features that gave the pod an interface of their own. */
function moreInterfaces(previous: CniResult): FeatureEntry[] {
  return FEATURES.filter(({ ownInterface }) => ownInterface?.isIn(previous));
}

/** Whether the pod may have a second interface was for ADD to decide, by the rules of that day. */
function withoutMoreInterfaces(raw: Json): Json {
  const keys = FEATURES.map(({ ownInterface }) => ownInterface?.key);
  return Object.fromEntries(Object.entries(raw).filter(([key]) => !keys.includes(key)));
}

/** Addresses without an interface belong to the only one there is. */
function ipsOf({ interfaces, ips }: CniResult, { owner }: AttachmentKey): ResultIp[] {
  return ips.filter((ip) => {
    const carrier = ip.interface === undefined ? undefined : interfaces[ip.interface];
    return ip.interface === undefined || (carrier?.name === owner.ifname && carrier.sandbox !== undefined);
  });
}

/** Returns the host's end of the pod's link, if there is one, and the MAC that ADD gave the pod's end, if that is known. */
function checkPod({ config, key, pod, host, previous, ips, differ }: Checking): {
  readonly hostLink: Link | undefined;
  readonly mac: Uint8Array;
} {
  const { ifname } = key.owner;
  const link = getLink(pod.netlink, { name: ifname });
  if (!link) {
    differ(`there is no "${ifname}" in "${pod.path}"`);
    return { hostLink: undefined, mac: new Uint8Array() };
  }
  const expected = previous.interfaces.find(({ name, sandbox }) => name === ifname && sandbox);
  if (!expected) differ(`the result of ADD names no "${ifname}"`);
  if (link.kind !== 'veth') differ(`"${ifname}" is no veth`);
  if (link.up === config.disableContainerInterface) differ(`"${ifname}" is ${link.up ? 'up' : 'down'}`);
  if (expected?.mac && !Buffer.from(link.address).equals(expected.mac)) {
    differ(`"${ifname}" has the MAC ${formatMac(link.address)}, ADD gave it ${formatMac(expected.mac)}`);
  }
  const addresses = listAddresses(pod.netlink, { index: link.index });
  for (const { address } of ips) {
    const found = addresses.find((has) => cidrEquals(has, address));
    if (!found) differ(`"${ifname}" lacks the address ${formatCidr(address)}`);
    else if ((found.flags & IFA_F_DADFAILED) !== 0) differ(`somebody else on the link uses ${formatCidr(address)}`);
  }
  checkRoutes({ pod, previous, differ });
  const hostLink = getLink(host, { index: link.peerIndex });
  const mac = expected?.mac ?? link.address;
  if (hostLink?.kind === 'veth' && hostLink.peerIndex === link.index) return { hostLink, mac };
  differ(`"${ifname}" has no other end on the host`);
  return { hostLink: undefined, mac };
}

function checkRoutes({ pod, previous, differ }: Pick<Checking, 'pod' | 'previous' | 'differ'>): void {
  const routes = listRoutes(pod.netlink);
  // A pod asks for a second interface in order to lead its traffic there.
  const mayMoveDefault = moreInterfaces(previous).length > 0;
  for (const { destination, gateway, table } of previous.routes) {
    if (mayMoveDefault && destination.prefixLength === 0) continue;
    const found = routes.some(
      (route) =>
        cidrEquals(route.destination, destination) &&
        (table === undefined || route.table === table) &&
        (!gateway || (route.gateway && ipEquals(route.gateway, gateway))),
    );
    if (!found) differ(`the route ${formatCidr(destination)}${gateway ? ` via ${formatIp(gateway)}` : ''} is missing`);
  }
}

/** Returns the link with the gateways' addresses, if there is one. */
function checkHost(checking: Checking, hostLink: Link): Promise<Link | undefined> {
  const { config, differ } = checking;
  if (!hostLink.up) differ(`link "${hostLink.name}" is down`);
  for (const family of new Set(checking.ips.map(({ address }) => address.address.family))) {
    const name = family === 'IPv4' ? 'net/ipv4/ip_forward' : 'net/ipv6/conf/all/forwarding';
    if (config.isGateway && readSysctl(name) !== '1') differ(`the node does not forward: ${name} is 0`);
  }
  return podNetwork(config.mode).check(checking, hostLink);
}

function checkRecords({ config, key, ips, differ }: Checking): void {
  if (config.ipam.kind !== 'native') return;
  const location = { dataDir: config.ipam.config.dataDir, network: config.name };
  const held = addressesHeld(location, key.owner, key.hostName);
  for (const { address } of ips) {
    if (!held.some((ip) => ipEquals(ip, address.address))) {
      differ(`${formatIp(address.address)} is not reserved for it in "${config.ipam.config.dataDir}"`);
    }
  }
}
