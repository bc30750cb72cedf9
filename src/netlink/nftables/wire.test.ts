import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { RULE_FORMS } from '../../../test/fakes/nftables-forms.ts';
import { readMessages } from '../message.ts';
import { NLM_F_ACK, NLM_F_CREATE, NLM_F_ECHO, NLMSG_HDRLEN } from '../uapi/netlink.ts';
import { NFT_MSG_NEWSET, NFT_MSG_NEWTABLE } from '../uapi/nf-tables.ts';
import { BatchEncoder } from './batch.ts';
import { hostOrder32, interfaceName, lookup, payload } from './expression/expressions.ts';
import { expressionKey } from './expression/same-rule.ts';
import type { NftChange, NftElements, NftObject } from './object/model.ts';
import { decodeRule } from './object/object-decode.ts';

// Captured with `strace -e trace=sendmsg -e write=all nft -f FILE`, nft 1.0.6: what is in the files beside each text.
const golden = (file: string) =>
  JSON.parse(readFileSync(new URL(`../../../test/golden/nftables-wire/${file}`, import.meta.url), 'utf8'));
const RULES: Readonly<Record<string, string>> = golden('rules.json');
type Captured = { readonly text: readonly string[]; readonly messages: readonly string[] };
const OBJECTS: Captured = golden('objects.json');
const BRIDGE: Captured = golden('bridge.json');

/** The messages between the begin and the end of a batch. */
function encoded(changes: readonly NftChange[]): string[] {
  const { bytes } = new BatchEncoder().encode(changes, 0);
  const messages: string[] = [];
  for (let at = 0; at < bytes.length; ) {
    const length = Buffer.from(bytes).readUInt32LE(at);
    messages.push(comparable(Buffer.from(bytes.subarray(at, at + length))));
    at += length;
  }
  return messages.slice(1, -1);
}

/**
 * Without what depends on the batch: the sequence number, and which messages are to be answered. For tables the kernel
 * does not look at NLM_F_CREATE, and `nft` leaves it out.
 */
function comparable(message: Buffer): string {
  const create = message[4] === NFT_MSG_NEWTABLE ? NLM_F_CREATE : 0;
  message.writeUInt16LE((message.readUInt16LE(6) & ~(NLM_F_ACK | NLM_F_ECHO)) | create, 6);
  message.writeUInt32LE(0, 8);
  return message.toString('hex');
}

/**
 * `nft` adds to the userdata of concatenations that their type was not given by `typeof` (records 3 and 4), and to maps
 * that their values are no ranges (6). Both say nothing, and are left out here.
 */
function withoutEmptyRecords(hex: string): string {
  const message = Buffer.from(hex, 'hex');
  if (message[4] !== NFT_MSG_NEWSET) return comparable(message);
  const end = message.length;
  let at = 20;
  while (message.readUInt16LE(at + 2) !== 13) at += (message.readUInt16LE(at) + 3) & ~3;
  const userdata = message.subarray(at + 4, at + message.readUInt16LE(at));
  const kept: Buffer[] = [];
  for (let i = 0; i < userdata.length; i += 2 + userdata[i + 1]!) {
    if (![3, 4, 6].includes(userdata[i]!)) kept.push(userdata.subarray(i, i + 2 + userdata[i + 1]!));
  }
  const value = Buffer.concat(kept);
  const attribute = Buffer.alloc(4 + ((value.length + 3) & ~3));
  attribute.writeUInt16LE(4 + value.length, 0);
  attribute.writeUInt16LE(13, 2);
  value.copy(attribute, 4);
  expect(at + ((message.readUInt16LE(at) + 3) & ~3)).toBe(end);
  const result = Buffer.concat([message.subarray(0, at), attribute]);
  result.writeUInt32LE(result.length, 0);
  return comparable(result);
}

/** Attributes as a tree of numbers and hex, which is compared piece by piece. */
type Tree = readonly (readonly [type: number, value: string | Tree])[];

/**
 * The attributes of a rule message. Left out is what `nft` writes besides, and the kernel does not look at here: the
 * numbers of sets that have a name (SET_ID of lookup and dynset), and 0 as the operation of bitwise, which means the same
 * as none.
 */
function ruleTree(hex: string): Tree {
  return tree(Buffer.from(hex, 'hex').subarray(20));
}

function tree(attributes: Uint8Array, expression?: string): Tree {
  const nodes: [number, string | Tree][] = [];
  let name = expression;
  for (const { type, value, nested } of walk(attributes)) {
    const text = Buffer.from(value).toString('hex');
    if (type === 1 && !nested && name === undefined) name = Buffer.from(value).toString('latin1').replace('\0', '');
    const ignored =
      (expression === 'lookup' && type === 4) ||
      (expression === 'dynset' && type === 2) ||
      (expression === 'bitwise' && type === 6 && text === '00000000');
    if (!ignored)
      nodes.push([type, nested ? tree(value, expression === undefined && type === 2 ? name : undefined) : text]);
  }
  return nodes;
}

function* walk(bytes: Uint8Array) {
  const view = Buffer.from(bytes);
  for (let at = 0; at < view.length; at += (view.readUInt16LE(at) + 3) & ~3) {
    const type = view.readUInt16LE(at + 2);
    yield { type: type & 0x3fff, nested: type >= 0x8000, value: view.subarray(at + 4, at + view.readUInt16LE(at)) };
  }
}

const T = { family: 'ip', table: 't' } as const;
const add = (object: NftObject): NftChange => ({ operation: 'add', object });
const elements = (set: string, setId: number, ...list: NftElements['elements']): NftChange =>
  add({ kind: 'elements', ...T, set, setId, elements: list });
const bytes = (...values: number[]) => Uint8Array.from(values);

describe('a rule', () => {
  it.each(RULE_FORMS)('is what nft sends for: $text', ({ family = 'ip', chain, text, expressions }) => {
    const [message] = encoded([add({ kind: 'rule', ...T, family, chain, expressions })]);
    expect(ruleTree(message!)).toEqual(ruleTree(RULES[text]!));
    const { expressions: read } = decodeRule(Buffer.from(RULES[text]!, 'hex').subarray(NLMSG_HDRLEN), family);
    expect(read.map(expressionKey)).toEqual(expressions.map(expressionKey));
  });
});

it('writes the objects of a table as nft does', () => {
  const changes: readonly NftChange[] = [
    add({ kind: 'table', family: 'ip', name: 't', comment: 'of tests' }),
    add({ kind: 'chain', ...T, name: 'target', comment: 'a target' }),
    add({
      kind: 'chain',
      ...T,
      name: 'in',
      base: { type: 'filter', hook: 'input', priority: -10, policy: 'drop' },
      comment: 'input',
    }),
    add({ kind: 'counter', ...T, name: 'hits', packets: 3n, bytes: 4n }),
    add({ kind: 'set', ...T, id: 1, name: 's4', key: ['ipv4_addr'], size: 100, comment: 'addresses' }),
    add({ kind: 'set', ...T, id: 2, name: 'ranges', key: ['ipv4_addr'], flags: ['interval'] }),
    add({ kind: 'set', ...T, id: 3, name: 'pairs', key: ['ipv4_addr', 'inet_service'], flags: ['interval'] }),
    add({
      kind: 'set',
      ...T,
      id: 4,
      name: 'dyn',
      key: ['ipv6_addr'],
      flags: ['dynamic', 'timeout'],
      timeoutMs: 3_600_000,
      gcIntervalMs: 10_000,
      size: 1000,
    }),
    add({ kind: 'set', ...T, id: 5, name: 'marks', key: ['mark'] }),
    add({
      kind: 'set',
      ...T,
      id: 6,
      name: 'services',
      key: ['ipv4_addr', 'inet_proto', 'inet_service'],
      data: 'verdict',
    }),
    add({
      kind: 'set',
      ...T,
      id: 7,
      name: 'endpoints',
      key: ['ipv4_addr', 'mark'],
      data: ['ipv4_addr', 'inet_service'],
    }),
    add({
      kind: 'rule',
      ...T,
      chain: 'in',
      expressions: [payload.saddr('IPv4'), { ...lookup('s4'), setId: 1 }],
      comment: 'the rule',
    }),
    elements('s4', 1, { key: bytes(10, 0, 0, 1), comment: 'one' }),
    elements('dyn', 4, { key: bytes(0xfd, ...new Array(14).fill(0), 1), timeoutMs: 30_000, comment: 'é' }),
    elements('pairs', 3, { key: bytes(10, 0, 0, 0, 0, 80, 0, 0), keyEnd: bytes(10, 255, 255, 255, 0, 90, 0, 0) }),
    elements('services', 6, {
      key: bytes(10, 0, 0, 1, 6, 0, 0, 0, 0, 80, 0, 0),
      verdict: { kind: 'goto', chain: 'target' },
    }),
    elements('services', 6, { key: bytes(10, 0, 0, 2, 6, 0, 0, 0, 0, 80, 0, 0), verdict: { kind: 'drop' } }),
    elements('endpoints', 7, {
      key: bytes(10, 0, 0, 1, ...hostOrder32(7)),
      data: bytes(10, 1, 0, 1, 0x1f, 0x90, 0, 0),
      comment: 'ep',
    }),
  ];
  expect(encoded(changes)).toEqual(OBJECTS.messages.map(withoutEmptyRecords));
});

it('writes the objects of a table of family bridge as nft does', () => {
  const B = { family: 'bridge', table: 't' } as const;
  const link = interfaceName('veth1');
  const changes: readonly NftChange[] = [
    add({ kind: 'table', family: 'bridge', name: 't' }),
    add({ kind: 'chain', ...B, name: 'frames', base: { type: 'filter', hook: 'prerouting', priority: -300 } }),
    add({ kind: 'set', ...B, id: 1, name: 'links', key: ['ifname'] }),
    add({ kind: 'set', ...B, id: 2, name: 'macs', key: ['ifname', 'ether_addr'] }),
    add({ kind: 'elements', ...B, set: 'links', setId: 1, elements: [{ key: link, comment: 'one' }] }),
    add({
      kind: 'elements',
      ...B,
      set: 'macs',
      setId: 2,
      elements: [{ key: bytes(...link, 2, 0, 0, 0, 0, 1, 0, 0), comment: 'one' }],
    }),
  ];
  expect(encoded(changes)).toEqual(BRIDGE.messages.map(withoutEmptyRecords));
});

it('begins with the expected generation, and asks the last change alone for an acknowledgement', () => {
  const table = add({ kind: 'table', family: 'ip6', name: 't' });
  const { bytes, messages } = new BatchEncoder().encode([table, table], 7, { expectGeneration: 0x01020304 });
  const [begin, first, last, end] = [...readMessages(bytes)];
  expect(messages).toBe(4);
  expect(begin).toMatchObject({ type: 16, flags: 1, sequence: 7 });
  expect(Buffer.from(begin!.payload).toString('hex')).toBe('0000000a' + '0800010001020304');
  expect(first).toMatchObject({ flags: 0x401, sequence: 8 });
  expect(last).toMatchObject({ flags: 0x405, sequence: 9 });
  expect(end).toMatchObject({ type: 17, flags: 1, sequence: 10 });
});

it('has no end when it is only to be checked', () => {
  const table = add({ kind: 'table', family: 'ip6', name: 't' });
  const { bytes, messages } = new BatchEncoder().encode([table], 7, { checkOnly: true });
  expect([...readMessages(bytes)].map(({ type, flags }) => [type, flags])).toEqual([
    [16, 1],
    [expect.any(Number), 0x40d],
  ]);
  expect(messages).toBe(2);
});
