import { formatCidr, formatMac, ipEquals, sameBytes } from '../../core/index.ts';
import type { Netlink } from '../../netlink/index.ts';
import { answeredLink, getLink, type Link, linkQuery, listAddresses } from '../../netlink/route/index.ts';
import { IFA_F_DADFAILED } from '../../netlink/uapi/index.ts';
import { type Finding, findingsOf } from './finding.ts';
import type { WantedLink } from './wanted-link.ts';

/** Links asked for in one datagram. */
const AT_ONCE = 50;
const REMEDY = 'no repair changes what is in a pod: delete the pod, so that it is made anew';

/** A pod and the host's end of its veth pair. */
export interface LinkedPod {
  readonly pod: WantedLink;
  readonly link: Link;
}

/**
 * In what the pod's ends of veth pairs differ from what their ADDs made. The kernel is asked by the number that the pod's namespace has
 * here, so that it need not be found or entered.
 *
 * @throws KernelError
 */
export function podEndFindings(host: Netlink, pods: readonly LinkedPod[]): Finding[] {
  const findings: Finding[] = [];
  for (let first = 0; first < pods.length; first += AT_ONCE) {
    const some = pods.slice(first, first + AT_ONCE);
    const questions = some.map(({ link }) => linkQuery({ index: link.peerIndex, netnsId: link.peerNetnsId }));
    const { answers } = host.exchange([], questions);
    for (const [i, linked] of some.entries()) {
      findings.push(...unlessGone(host, linked, () => findingsOfEnd(host, linked, answeredLink(answers[i]!))));
    }
  }
  return findings;
}

/** A pod may go, and its namespace with it, while it is asked about: then the kernel does not know the namespace's number. */
function unlessGone(host: Netlink, { link }: LinkedPod, ask: () => Finding[]): Finding[] {
  try {
    return ask();
  } catch (error) {
    if (!getLink(host, { index: link.index })) return [];
    throw error;
  }
}

function findingsOfEnd(host: Netlink, { pod, link }: LinkedPod, end: Link | undefined): Finding[] {
  const { key, made, mac, ips, mode } = pod;
  const { ifname } = key.owner;
  // The pair is gone since it was listed.
  if (!end) return [];
  const theirs: string[] = [];
  if (link.peerNetnsId === undefined) theirs.push('is in the namespace of the node');
  if (end.name !== ifname) theirs.push(`name ${end.name}`);
  if (!end.up && !made?.down) theirs.push('down');
  if (made && end.mtu !== made.mtu) theirs.push(`mtu ${end.mtu}, not ${made.mtu}`);
  if (!sameBytes(end.address, mac)) theirs.push(`address ${formatMac(end.address)}, not ${formatMac(mac)}`);
  const has = listAddresses(host, { index: end.index, netnsId: link.peerNetnsId });
  for (const { address } of ips) {
    const found = has.find((one) => ipEquals(one.address, address.address));
    if (!found || (mode === 'bridge' && found.prefixLength !== address.prefixLength)) {
      theirs.push(`lacks the address ${formatCidr(address)}`);
    } else if ((found.flags & IFA_F_DADFAILED) !== 0) theirs.push(`somebody else has ${formatCidr(address)}`);
  }
  const lines = theirs.length > 0 ? [...theirs, REMEDY] : [];
  return findingsOf(
    `"${ifname}" in the pod of attachment "${key.alias}"`,
    lines.map((line) => ({ theirs: line })),
  );
}
