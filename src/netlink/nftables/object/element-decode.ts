import { readBe32, readU16 } from '../../../core/index.ts';
import { decodeError } from '../../decode-error.ts';
import { NLA_HDRLEN, NLA_TYPE_MASK } from '../../uapi/netlink.ts';
import {
  NFT_SET_ELEM_CATCHALL,
  NFT_SET_ELEM_INTERVAL_END,
  NFTA_DATA_VALUE,
  NFTA_SET_ELEM_DATA,
  NFTA_SET_ELEM_EXPIRATION,
  NFTA_SET_ELEM_FLAGS,
  NFTA_SET_ELEM_KEY,
  NFTA_SET_ELEM_KEY_END,
  NFTA_SET_ELEM_TIMEOUT,
  NFTA_SET_ELEM_USERDATA,
} from '../../uapi/nf-tables.ts';
import { NFTA_DATA } from '../../uapi/nf-tables-expressions.ts';
import type { Verdict } from '../expression/expression.ts';
import { readOptional64 } from '../expression/integers.ts';
import { readVerdict } from '../expression/verdict.ts';
import type { NftElement } from './model.ts';
import { readComment } from './userdata.ts';

/** What is collected of an element; the fields of an `NftElement`, writable. */
type Draft = { -readonly [K in keyof NftElement]: NftElement[K] };

const NO_KEY = new Uint8Array();

/**
 * Appends the elements of a list to `into`. Keys and values are views into `bytes`.
 *
 * Walks the attributes in place: a listing of 100,000 elements is read when the agent starts.
 *
 * @param bytes the content of NFTA_SET_ELEM_LIST_ELEMENTS
 * @throws ERR_NETLINK_DECODE
 */
export function decodeElements(bytes: Uint8Array, into: NftElement[]): void {
  const end = bytes.length;
  for (let at = 0; at < end; ) {
    const next = attributeEnd(bytes, at, end);
    into.push(element(bytes, at + NLA_HDRLEN, next));
    at = (next + 3) & ~3;
  }
}

function element(bytes: Uint8Array, start: number, end: number): NftElement {
  const draft: Draft = { key: NO_KEY };
  for (let at = start; at < end; ) {
    const next = attributeEnd(bytes, at, end);
    const type = readU16(bytes, at + 2) & NLA_TYPE_MASK;
    const from = at + NLA_HDRLEN;
    if (type === NFTA_SET_ELEM_KEY) draft.key = value(bytes, from, next, 'NFTA_SET_ELEM_KEY');
    else if (type === NFTA_SET_ELEM_DATA) data(draft, bytes, from, next);
    else if (type === NFTA_SET_ELEM_USERDATA) comment(draft, bytes.subarray(from, next));
    else if (type === NFTA_SET_ELEM_FLAGS) flags(draft, bytes, from, next);
    else if (type === NFTA_SET_ELEM_KEY_END) draft.keyEnd = value(bytes, from, next, 'NFTA_SET_ELEM_KEY_END');
    else if (type === NFTA_SET_ELEM_TIMEOUT)
      draft.timeoutMs = readOptional64(bytes.subarray(from, next), 'NFTA_SET_ELEM_TIMEOUT');
    else if (type === NFTA_SET_ELEM_EXPIRATION) {
      draft.expirationMs = readOptional64(bytes.subarray(from, next), 'NFTA_SET_ELEM_EXPIRATION');
    }
    at = (next + 3) & ~3;
  }
  return draft;
}

function data(draft: Draft, bytes: Uint8Array, start: number, end: number): void {
  if (end - start >= NLA_HDRLEN && (readU16(bytes, start + 2) & NLA_TYPE_MASK) === NFTA_DATA_VALUE) {
    draft.data = value(bytes, start, end, 'NFTA_SET_ELEM_DATA');
  } else {
    draft.verdict = verdict(bytes.subarray(start, end));
  }
}

function verdict(nest: Uint8Array): Verdict {
  const { NFTA_DATA_VERDICT: found } = NFTA_DATA.decode(nest);
  if (!found) throw decodeError('NFTA_SET_ELEM_DATA', 'it holds neither a value nor a verdict');
  return readVerdict(found.NFTA_VERDICT_CODE, found.NFTA_VERDICT_CHAIN);
}

function comment(draft: Draft, userdata: Uint8Array): void {
  const found = readComment(userdata);
  if (found !== undefined) draft.comment = found;
}

function flags(draft: Draft, bytes: Uint8Array, start: number, end: number): void {
  if (end - start !== 4) throw decodeError('NFTA_SET_ELEM_FLAGS', `it has ${end - start} bytes, expected 4`);
  const bits = readBe32(bytes, start);
  if ((bits & NFT_SET_ELEM_INTERVAL_END) !== 0) draft.intervalEnd = true;
  if ((bits & NFT_SET_ELEM_CATCHALL) !== 0) draft.catchAll = true;
}

/** The NFTA_DATA_VALUE in a nest. */
function value(bytes: Uint8Array, start: number, end: number, what: string): Uint8Array {
  if (start >= end) throw decodeError(what, 'it is empty');
  const last = attributeEnd(bytes, start, end);
  if ((readU16(bytes, start + 2) & NLA_TYPE_MASK) !== NFTA_DATA_VALUE) throw decodeError(what, 'it holds no value');
  return bytes.subarray(start + NLA_HDRLEN, last);
}

/** Where the attribute at `at` ends, without padding. */
function attributeEnd(bytes: Uint8Array, at: number, end: number): number {
  const left = end - at;
  if (left < NLA_HDRLEN) throw decodeError('set elements', `${left} bytes are left, too few for an attribute header`);
  const length = readU16(bytes, at);
  if (length < NLA_HDRLEN || length > left) {
    throw decodeError('set elements', `the attribute at byte ${at} claims ${length} bytes, ${left} are left`);
  }
  return at + length;
}
