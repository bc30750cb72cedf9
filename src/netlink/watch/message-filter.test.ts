import { describe, expect, it } from 'vitest';
import { type MessageRule, messageFilter, withoutPorts } from './message-filter.ts';

const LINKS: MessageRule = { types: [16, 17], field: ['u8', 0], values: [0] };
const ROUTES: MessageRule = { types: [24, 25], field: ['u8', 5], values: [80, 81] };
const NEIGHBOURS: MessageRule = { types: [28, 29], field: ['s32', 4], values: [7, 0x01020304] };
const NOBODY: MessageRule = { types: [104, 105], field: ['u8', 2], values: [] };

/** What the kernel's interpreter would do: whether it takes the message. */
function takes(program: Uint8Array, message: Buffer): boolean {
  const code = Buffer.from(program);
  let loaded = 0;
  for (let at = 0; ; at++) {
    if (8 * at >= code.length) throw new Error('The program has no end');
    const [operation, jt, jf, k] = [
      code.readUInt16LE(8 * at),
      code[8 * at + 2]!,
      code[8 * at + 3]!,
      code.readUInt32LE(8 * at + 4),
    ];
    if (operation === 0x06) return k !== 0;
    if (operation === 0x15) at += loaded === k ? jt : jf;
    else if (operation === 0x30) loaded = message.readUInt8(k);
    else if (operation === 0x28) loaded = message.readUInt16BE(k);
    else if (operation === 0x20) loaded = message.readUInt32BE(k);
    else throw new Error(`The program has an instruction 0x${operation.toString(16)}`);
  }
}

function message(type: number, body: number[], port = 0): Buffer {
  const header = Buffer.alloc(16);
  header.writeUInt16LE(type, 4);
  header.writeUInt32LE(port, 12);
  return Buffer.concat([header, Buffer.from(body)]);
}

const route = (protocol: number, port?: number) => message(24, [2, 24, 0, 0, 254, protocol, 0, 1, 0, 0, 0, 0], port);
const neighbour = (...index: number[]) => message(29, [2, 0, 0, 0, ...index, 0x80, 0, 0, 1]);
const link = (family: number) => message(17, [family, 0, 0, 0]);

describe('messageFilter', () => {
  const program = messageFilter([LINKS, ROUTES, NEIGHBOURS, NOBODY], [4711, 0xcafe_1234]);

  it.each([
    ['a link', link(0), true],
    ['a bridge port', link(7), false],
    ['a route of the first protocol', route(80), true],
    ['a route of the second', route(81), true],
    ['a route of another', route(82), false],
    ['a neighbour', neighbour(7, 0, 0, 0), true],
    ['a neighbour of a link with a large index', neighbour(4, 3, 2, 1), true],
    ['a neighbour of another link', neighbour(0, 0, 0, 7), false],
    ['a nexthop, which nobody asked for', message(104, [2, 0, 0, 0, 0, 0, 0, 0]), false],
    ['an address, which no rule is for', message(20, [2, 0, 0, 0]), false],
    ['a route, changed over a socket of ours', route(80, 4711), false],
    ['a route, changed over another socket of ours', route(80, 0xcafe_1234), false],
    ['a route, changed over a foreign socket', route(80, 4712), true],
  ])('%s: %#', (_, bytes, expected) => {
    expect(takes(program, bytes)).toBe(expected);
  });

  it('takes nothing without rules', () => {
    expect(takes(messageFilter([]), route(80))).toBe(false);
  });

  it('is bounded by what a jump can cross', () => {
    const values = Array.from({ length: 100 }, (_, i) => i);
    const most = messageFilter([{ ...ROUTES, values }, NEIGHBOURS]);
    expect([takes(most, route(99)), takes(most, route(100)), takes(most, neighbour(7, 0, 0, 0))]).toEqual([
      true,
      false,
      true,
    ]);
    expect(() => messageFilter([{ ...ROUTES, values: [...values, 100] }])).toThrow(
      expect.objectContaining({ code: 'ERR_ENCODE' }),
    );
  });
});

it('withoutPorts takes what others change, and some types whoever does', () => {
  const program = withoutPorts([4711, 0xcafe_1234], [29]);
  expect(
    [route(80), route(80, 4712), route(80, 4711), route(80, 0xcafe_1234)].map((bytes) => takes(program, bytes)),
  ).toEqual([true, true, false, false]);
  expect(takes(program, message(29, [2, 0, 0, 0], 4711))).toBe(true);
  expect(takes(withoutPorts([]), route(80))).toBe(true);
});
