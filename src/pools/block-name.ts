import { createHash } from 'node:crypto';

/** Of a block: the hash of its node's name, to list a node's blocks by. A label holds 63 characters, a node's name up to 253. */
export const NODE_HASH_LABEL = 'nodeplane.io/node-hash';

/** The name of the object of a range: `10-244-0-64-26`. No two ranges have the same one. */
export function blockName(cidr: string): string {
  return cidr.replace(/[.:/]/g, '-');
}

/** The value of NODE_HASH_LABEL: 128 bits of SHA-256, in hexadecimal. */
export function nodeHash(node: string): string {
  return createHash('sha256').update(node).digest('hex').slice(0, 32);
}
