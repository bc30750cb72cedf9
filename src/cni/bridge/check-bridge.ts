import { cidrEquals, formatCidr } from '../../core/index.ts';
import { getLink, type Link, listAddresses, listBridgeVlans } from '../../netlink/route/index.ts';
import { filtersVlans, gatewayLinkName } from '../config/bridge-config.ts';
import type { Checking } from '../link/checking.ts';
import { bridgeAddressing } from './bridge-addressing.ts';
import { missingVlans } from './port-vlans.ts';
import { isGatewayApart } from './vlan-gateway.ts';

/**
 * CHECK of what `connectToBridge` made: the bridge, the pod's port of it, their VLANs, and the gateways' addresses.
 *
 * @returns the link with the gateways' addresses, if there is one
 */
export function checkBridgePort({ config, host, ips, differ }: Checking, hostLink: Link): Link | undefined {
  const { name, hairpinMode, portIsolation } = config.bridge;
  const bridge = getLink(host, { name });
  if (bridge?.kind !== 'bridge') {
    differ(`there is no bridge "${name}"`);
    return undefined;
  }
  if (!bridge.up) differ(`bridge "${name}" is down`);
  if (hostLink.master !== bridge.index) differ(`link "${hostLink.name}" is no port of the bridge "${name}"`);
  const port = hostLink.bridgePort;
  if (port && port.hairpin !== hairpinMode)
    differ(`hairpin mode of "${hostLink.name}" is ${port.hairpin ? 'on' : 'off'}`);
  if (port && port.isolated !== portIsolation)
    differ(`isolation of "${hostLink.name}" is ${port.isolated ? 'on' : 'off'}`);
  if (filtersVlans(config.bridge)) checkVlans({ config, host, differ }, hostLink);
  return checkGateway({ config, host, ips, differ }, bridge);
}

function checkGateway(
  { config, host, ips, differ }: Pick<Checking, 'config' | 'host' | 'ips' | 'differ'>,
  bridge: Link,
): Link | undefined {
  const { bridgeAddresses } = bridgeAddressing.derive(config, { ips, routes: [], dns: {} });
  const isApart = isGatewayApart(config, bridgeAddresses);
  const name = gatewayLinkName(config.bridge);
  const link = isApart ? getLink(host, { name }) : bridge;
  const what = isApart ? `gateway "${name}"` : `bridge "${name}"`;
  if (!link) {
    differ(`there is no ${what}`);
    return undefined;
  }
  if (isApart) checkVlanLink({ config, host, differ }, bridge, link);
  const addresses = listAddresses(host, { index: link.index });
  for (const gateway of bridgeAddresses) {
    if (!addresses.some((has) => cidrEquals(has, gateway))) differ(`${what} lacks the address ${formatCidr(gateway)}`);
  }
  return link;
}

function checkVlanLink(
  { config, host, differ }: Pick<Checking, 'config' | 'host' | 'differ'>,
  bridge: Link,
  link: Link,
) {
  const { vlan } = config.bridge;
  if (!link.up) differ(`gateway "${link.name}" is down`);
  const isMember = listBridgeVlans(host).some(
    ({ index, first, last }) => index === bridge.index && first <= vlan && vlan <= last,
  );
  if (link.kind === 'vlan' && !isMember) differ(`bridge "${bridge.name}" itself is no member of VLAN ${vlan}`);
}

function checkVlans({ config, host, differ }: Pick<Checking, 'config' | 'host' | 'differ'>, hostLink: Link): void {
  const has = listBridgeVlans(host).filter(({ index }) => index === hostLink.index);
  const { own, spans } = missingVlans(has, config.bridge);
  if (own) differ(`untagged frames of "${hostLink.name}" do not belong to VLAN ${config.bridge.vlan}`);
  for (const { id } of spans) differ(`"${hostLink.name}" is no member of VLAN ${id}`);
}
