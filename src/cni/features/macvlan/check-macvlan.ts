import { formatCidr, formatMac, ipEquals } from '../../../core/index.ts';
import { getLink, listAddresses } from '../../../netlink/route/index.ts';
import { IFA_F_DADFAILED } from '../../../netlink/uapi/index.ts';
import type { Checking } from '../../link/checking.ts';
import { isMacvlan, MACVLAN_NAME } from './name.ts';

/** CHECK of the second interface, against the result of ADD. Its routes are compared with all others of that result. */
export function checkMacvlan({ pod, previous, differ }: Pick<Checking, 'pod' | 'previous' | 'differ'>): void {
  const position = previous.interfaces.findIndex(isMacvlan);
  const link = getLink(pod.netlink, { name: MACVLAN_NAME });
  if (link?.kind !== 'macvlan') {
    differ(`there is no macvlan "${MACVLAN_NAME}" in "${pod.path}"`);
    return;
  }
  if (!link.up) differ(`"${MACVLAN_NAME}" is down`);
  const mac = previous.interfaces[position]?.mac;
  if (mac && !Buffer.from(link.address).equals(mac)) {
    differ(`"${MACVLAN_NAME}" has the MAC ${formatMac(link.address)}, ADD gave it ${formatMac(mac)}`);
  }
  const addresses = listAddresses(pod.netlink, { index: link.index });
  for (const { address } of previous.ips.filter((ip) => ip.interface === position)) {
    const found = addresses.find((has) => ipEquals(has.address, address.address));
    if (!found) differ(`"${MACVLAN_NAME}" lacks the address ${formatCidr(address)}`);
    else if ((found.flags & IFA_F_DADFAILED) !== 0) {
      differ(`somebody else on the network of "${MACVLAN_NAME}" uses ${formatCidr(address)}`);
    }
  }
}
