import type { JournalEntry } from '../../ipam/index.ts';
import type { AttachmentEnvironment, ContainerId, InterfaceName, NetworkName } from './environment.ts';
import { fingerprint } from './fingerprint.ts';

/** What identifies an attachment, and the names on the host that follow from it. */
export interface AttachmentKey {
  readonly network: NetworkName;
  readonly owner: Pick<AttachmentEnvironment, 'containerId' | 'ifname'>;
  /** The host's end of the veth pair. It can be found, and deleted, when the pod's namespace is gone. */
  readonly hostName: InterfaceName;
  /** The alias of the host's end: proof that a link of that name is this attachment, and a hint for people. */
  readonly alias: string;
}

/** The kernel keeps IFALIASZ - 1 bytes. */
const LONGEST_ALIAS = 255;
/** With `veth` in front the longest name a link may have: 44 bits of the fingerprint. */
const NAME_DIGITS = 11;

/** The key of a container’s interface in a network. The same three give the same names on the host, in every process. */
export function attachmentKey(
  network: NetworkName,
  { containerId, ifname }: Pick<AttachmentEnvironment, 'containerId' | 'ifname'>,
): AttachmentKey {
  // None of the three can hold a slash, so the text is unambiguous.
  const text = `${network}/${containerId}/${ifname}`;
  const digits = fingerprint(text).toString(16).padStart(16, '0').slice(-NAME_DIGITS);
  return {
    network,
    owner: { containerId, ifname },
    hostName: `veth${digits}` as InterfaceName,
    alias: text.slice(0, LONGEST_ALIAS),
  };
}

/** The key of an attachment that the journal of a network has; it was valid when it was noted. */
export function keyOfEntry(network: string, { owner }: Pick<JournalEntry, 'owner'>): AttachmentKey {
  const [containerId, ifname] = [owner.containerId as ContainerId, owner.ifname as InterfaceName];
  return attachmentKey(network as NetworkName, { containerId, ifname });
}

/**
 * Whether a link is the host's end of a pod's in a network. The device that limits a pod's traffic has the alias of that, and is none.
 */
export function isPodLink(
  { kind, alias }: { readonly kind: string; readonly alias: string },
  network: string,
): boolean {
  return kind === 'veth' && alias.startsWith(`${network}/`);
}
