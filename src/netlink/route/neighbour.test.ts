import { describe, expect, it } from 'vitest';
import { capturedHex, capturedPayload, wireHex } from '../../../test/fakes/netlink-golden.ts';
import { parseIp } from '../../core/index.ts';
import { NTF_MASTER, NTF_PROXY, NUD_FAILED, NUD_NOARP, NUD_PERMANENT, NUD_REACHABLE } from '../uapi/neighbour.ts';
import { decodeNeighbour, deleteNeighbour, type NeighbourSpec, neighbourListing, newNeighbour } from './neighbour.ts';

// Captured from iproute2 6.1.0 with `strace -e trace=sendmsg -e write=all <command>` where cni0 has index 4, the port
// vethnew 5 and vx0 6.

const mac = (last: number) => Uint8Array.of(2, 0, 0, 0, 0, last);
/** What `bridge fdb` calls permanent. */
const FDB_PERMANENT = NUD_NOARP | NUD_PERMANENT;

describe('newNeighbour', () => {
  it.each<[NeighbourSpec, string]>([
    // ip neigh add 10.1.0.9 lladdr 02:00:00:00:00:11 dev cni0
    [
      { index: 4, ip: parseIp('10.1.0.9'), lladdr: mac(0x11) },
      '300000001c0005065792006b00000000020000000400000080000000080001000a0100090a0002000200000000110000',
    ],
    // ip neigh replace fd00::9 lladdr 02:00:00:00:00:12 dev cni0 nud reachable
    [
      { index: 4, ip: parseIp('fd00::9'), lladdr: mac(0x12), state: NUD_REACHABLE, replace: true },
      '3c0000001c0005055792006b000000000a000000040000000200000014000100fd000000000000000000000000000009' +
        '0a0002000200000000120000',
    ],
    // ip neigh add proxy 10.1.0.10 dev cni0
    [
      { index: 4, ip: parseIp('10.1.0.10'), flags: NTF_PROXY },
      '240000001c0005065792006b00000000020000000400000080000800080001000a01000a',
    ],
    // bridge fdb add 02:00:00:00:00:13 dev vethnew self permanent
    [
      { index: 5, family: 'bridge', lladdr: mac(0x13), state: FDB_PERMANENT },
      '280000001c0005065792006b000000000700000005000000c00002000a0002000200000000130000',
    ],
    // bridge fdb add 02:00:00:00:00:14 dev vethnew master static, with NUD_NOARP alone (0x40) in place of
    // NUD_NOARP|NUD_REACHABLE (0x42): the kernel makes the same entry of both
    [
      { index: 5, family: 'bridge', lladdr: mac(0x14), state: NUD_NOARP, flags: NTF_MASTER },
      '280000001c0005065792006b000000000700000005000000400004000a0002000200000000140000',
    ],
  ])('%o', (spec, captured) => {
    expect(wireHex(newNeighbour(spec))).toBe(capturedHex(captured));
  });

  it.each<[NeighbourSpec, number, string]>([
    // bridge fdb replace 02:00:00:00:00:15 dev vx0 dst 10.0.0.7 self permanent
    [
      { index: 6, family: 'bridge', lladdr: mac(0x15), ip: parseIp('10.0.0.7'), state: FDB_PERMANENT, replace: true },
      0x500,
      '300000001c0005055792006b000000000700000006000000c00002000a0002000200000000150000080001000a000007',
    ],
  ])('%o, with the attributes the other way round', (spec, flags, captured) => {
    const request = newNeighbour(spec);
    expect(request.flags).toBe(flags);
    expect(decodeNeighbour(request.payload)).toEqual(decodeNeighbour(capturedPayload(captured)));
  });

  it('needs to know whose table it is for', () => {
    expect(() => newNeighbour({ index: 4, lladdr: mac(1) })).toThrow(
      'Cannot write the neighbour at 02:00:00:00:00:01 on link 4: neither its address nor its family is given',
    );
  });
});

describe('deleteNeighbour', () => {
  it('a neighbour', () => {
    // ip neigh del 10.1.0.9 dev cni0
    const captured = '240000001d0005005792006b00000000020000000400000080000000080001000a010009';
    expect(wireHex(deleteNeighbour({ index: 4, ip: parseIp('10.1.0.9') }))).toBe(capturedHex(captured));
  });

  it('an entry of a forwarding database', () => {
    // bridge fdb del 02:00:00:00:00:14 dev vethnew master, with NUD_PERMANENT (0x80) in place of 0xc0: not looked at
    const captured = '280000001d0005005792006b000000000700000005000000800004000a0002000200000000140000';
    const spec = { index: 5, family: 'bridge', lladdr: mac(0x14), flags: NTF_MASTER } as const;
    expect(wireHex(deleteNeighbour(spec))).toBe(capturedHex(captured));
  });
});

describe('decodeNeighbour', () => {
  it('reads back what was captured', () => {
    const payload = capturedPayload(
      '300000001c0005055792006b000000000700000006000000c00002000a0002000200000000150000080001000a000007',
    );
    expect(decodeNeighbour(payload)).toEqual({
      family: 'bridge',
      index: 6,
      ip: parseIp('10.0.0.7'),
      lladdr: Buffer.from(mac(0x15)),
      state: FDB_PERMANENT,
      flags: 2,
      master: 0,
      vlan: undefined,
      unknown: [],
    });
  });

  it('says how long ago it changed', () => {
    // By hand: nda_cacheinfo{ndm_confirmed 900, ndm_used 800, ndm_updated 650, ndm_refcnt 1}, in hundredths of a second.
    const payload = Buffer.from(
      '020000000400000020000001' + '08000100' + '0a010009' + '14000300' + '84030000200300008a02000001000000',
      'hex',
    );
    expect(decodeNeighbour(payload)).toMatchObject({ state: NUD_FAILED, changedSecondsAgo: 6.5 });
  });

  it('refuses a tunnel end of 5 bytes', () => {
    const payload = Buffer.from('070000000600000080000200' + '09000100' + '0a00000700000000', 'hex');
    expect(() => decodeNeighbour(payload)).toThrow('Cannot decode NDA_DST: it has 5 bytes, expected 16 for IPv6');
  });
});

describe('neighbourListing', () => {
  it('filters by link and bridge', () => {
    // By hand: ndmsg{AF_BRIDGE}, NDA_IFINDEX (8) 5, NDA_MASTER (9) 4.
    const { payload } = neighbourListing({ family: 'bridge', index: 5, master: 4 });
    expect(Buffer.from(payload).toString('hex')).toBe(
      '070000000000000000000000' + '0800080005000000' + '0800090004000000',
    );
  });
});
