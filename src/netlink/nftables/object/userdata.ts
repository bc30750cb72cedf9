// What the kernel keeps for `nft` and hands back unread: comments, and how to print the keys of sets.

import { NodeplaneError } from '../../../core/index.ts';
import { NFT_USERDATA_MAXLEN } from '../../uapi/nf-tables.ts';
import { type DatatypeName, datatype } from './datatypes.ts';
import { saysTypeof, typeofValue, UDATA_SET_DATA_TYPEOF, UDATA_SET_KEY_TYPEOF } from './typeof.ts';
import { numberRecord, readRecord, record } from './userdata-record.ts';

/** The comment's type in tables, chains, rules, elements and counters. */
export const UDATA_COMMENT = 0;
/** Its type in sets, where others come first. */
export const UDATA_SET_COMMENT = 7;
const UDATA_SET_KEYBYTEORDER = 0;
const UDATA_SET_DATABYTEORDER = 1;

/** Of a comment in UTF-8, without its NUL: what the kernel keeps of userdata, less type, length and NUL. */
export const COMMENT_MAXLEN = NFT_USERDATA_MAXLEN - 3;

// enum byteorder of nft.
const BYTEORDER = { host: 1, network: 2 } as const;

/** Userdata with nothing but a comment; undefined when there is none. Throws ERR_ENCODE for one that is too long. */
export function commentUserdata(comment: string | undefined): Uint8Array | undefined {
  return comment === undefined ? undefined : Uint8Array.from(commentRecord(UDATA_COMMENT, comment));
}

/**
 * The userdata of a set or map, without which `nft` prints integers in the wrong byte order, or as what it cannot read.
 * Throws ERR_ENCODE.
 */
export function setUserdata(
  key: readonly DatatypeName[],
  data: readonly DatatypeName[] | 'verdict' | undefined,
  comment: string | undefined,
): Uint8Array {
  const bytes = numberRecord(UDATA_SET_KEYBYTEORDER, byteorder(key));
  if (data !== undefined)
    bytes.push(...numberRecord(UDATA_SET_DATABYTEORDER, data === 'verdict' ? 0 : byteorder(data)));
  if (saysTypeof(key, data)) {
    bytes.push(...record(UDATA_SET_KEY_TYPEOF, typeofValue(key)));
    if (data !== undefined && data !== 'verdict') bytes.push(...record(UDATA_SET_DATA_TYPEOF, typeofValue(data)));
  }
  if (comment !== undefined) bytes.push(...commentRecord(UDATA_SET_COMMENT, comment));
  if (bytes.length > NFT_USERDATA_MAXLEN) throw tooLong(comment ?? '');
  return Uint8Array.from(bytes);
}

/** The comment in userdata; undefined when there is none, or when another program wrote something else there. */
export function readComment(userdata: Uint8Array | undefined, type = UDATA_COMMENT): string | undefined {
  const text = readRecord(userdata, type);
  return text === undefined || text.at(-1) !== 0 ? undefined : Buffer.from(text.subarray(0, -1)).toString('utf8');
}

/** Throws ERR_ENCODE for a comment that is too long or has a NUL in it. */
function commentRecord(type: number, comment: string): number[] {
  const text = Buffer.from(comment);
  if (text.length > COMMENT_MAXLEN) throw tooLong(comment);
  if (text.includes(0))
    throw new NodeplaneError('ERR_ENCODE', `Cannot write ${JSON.stringify(comment)}: it contains a NUL`);
  return record(type, [...text, 0]);
}

function tooLong(comment: string): NodeplaneError {
  return new NodeplaneError('ERR_ENCODE', `Cannot write the comment "${comment}": at most ${COMMENT_MAXLEN} bytes fit`);
}

/** 0 for a concatenation, whose fields say it themselves. */
function byteorder(fields: readonly DatatypeName[]): number {
  return fields.length === 1 ? BYTEORDER[datatype(fields[0]!).byteorder] : 0;
}
