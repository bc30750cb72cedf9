import type { AttachmentKey } from '../../protocol/attachment-key.ts';

/** The kernel keeps 255 bytes of a comment, `nft` and libnftnl show no more than this. */
const LONGEST_COMMENT = 127;

/**
 * The comment of every element made for an attachment: the name of its link, which identifies it, then network, container
 * and interface for people and for GC. With it the elements of an attachment can be found in the kernel alone.
 */
export function ownerComment({ hostName, alias }: AttachmentKey): string {
  return `${hostName} ${alias}`.slice(0, LONGEST_COMMENT);
}

/** Whether an element with this comment was made for the attachment. */
export function isOwnedBy(comment: string | undefined, { hostName }: AttachmentKey): boolean {
  return comment?.startsWith(`${hostName} `) ?? false;
}

/** The name of the link of the attachment that an element with this comment was made for; undefined if none was. */
export function linkOf(comment: string | undefined): string | undefined {
  return /^veth[0-9a-f]{11}(?= )/.exec(comment ?? '')?.[0];
}

/**
 * Whether an element with this comment was made for an attachment of `network` that is not among the `valid` ones. One whose
 * network's name was cut off stays.
 */
export function isStale(comment: string | undefined, network: string, valid: readonly AttachmentKey[]): boolean {
  if (!comment || valid.some((key) => isOwnedBy(comment, key))) return false;
  const link = linkOf(comment);
  return link !== undefined && comment.startsWith(`${link} ${network}/`);
}

/** What a message calls the attachment that an element with this comment was made for. */
export function describeOwner(comment: string | undefined): string {
  const link = linkOf(comment);
  if (link !== undefined) return `attachment "${comment!.slice(link.length + 1)}"`;
  return comment ? `somebody else ("${comment}")` : 'somebody else';
}
