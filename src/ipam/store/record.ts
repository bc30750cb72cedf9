/** Whose address it is: one interface of one container. */
export interface Owner {
  readonly containerId: string;
  readonly ifname: string;
}

/** How a reservation file relates to an owner. */
export type Ownership = 'interface' | 'container' | 'other';

/** The content of a reservation file: host-local's, byte for byte. */
export function formatRecord({ containerId, ifname }: Owner): string {
  return `${containerId}\r\n${ifname}`;
}

/**
 * Whether the content of a reservation file names `owner`: 'interface' for the present format, 'container' for the format
 * before host-local 0.8, which held the bare container ID, 'other' for anything else, unreadable text included.
 */
export function ownershipOf(content: string, owner: Owner): Ownership {
  const text = content.trim();
  if (text === formatRecord(owner)) return 'interface';
  return text === owner.containerId ? 'container' : 'other';
}

/** What names somebody: a container ID as the CNI specification has it, and an interface unless the format is the old one. */
const NAMES_SOMEBODY = /^[\w.-]+(\r\n[!-~]+)?$/;

/**
 * Whether a reservation file is an owner's for whom its address is noted: it names him, or nobody, as a file does that was
 * emptied, cut short or overwritten with something else.
 */
export function isOwnOrDamaged(content: string, owner: Owner): boolean {
  const text = content.trim();
  return formatRecord(owner).startsWith(text) || !NAMES_SOMEBODY.test(text);
}
