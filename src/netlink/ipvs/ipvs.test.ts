import { describe, expect, it } from 'vitest';
import { expectSafeDecoder } from '../../../test/fakes/decoder-properties.ts';
import { answer, FakeNetlink, frame } from '../../../test/fakes/fake-netlink.ts';
import { capturedHex, capturedPayload, wireHex } from '../../../test/fakes/netlink-golden.ts';
import { parseIp } from '../../core/index.ts';
import { decodeFamilyId, familyQuery, resolveFamily } from '../generic-family.ts';
import { Netlink } from '../netlink.ts';
import { IP_VS_SVC_F_SCHED_MH_PORT } from '../uapi/ip-vs.ts';
import { parseIpvsConnections } from './connections.ts';
import {
  decodeDestination,
  deleteDestination,
  destinationListing,
  newDestination,
  setDestination,
} from './destination.ts';
import { decodeTimeouts, setIpvsTimeouts } from './ipvs-config.ts';
import { decodeStatistics } from './statistics.ts';
import {
  decodeVirtualServer,
  deleteVirtualServer,
  newVirtualServer,
  setVirtualServer,
  type VirtualServer,
  virtualServerListing,
} from './virtual-server.ts';

// Captured from ipvsadm 1.31 on Linux 6.1 with `strace -e trace=sendmsg,recvmsg -e write=all -e read=all`, where the
// family IPVS had the number 32.
const IPVS = 32;

const web: VirtualServer = {
  key: { kind: 'address', protocol: 6, address: parseIp('10.96.0.1'), port: 80 },
  scheduler: 'rr',
  flags: 0,
  persistenceSeconds: 0,
};
const sticky: VirtualServer = {
  key: { kind: 'address', protocol: 6, address: parseIp('fd00::1'), port: 443 },
  scheduler: 'mh',
  flags: IP_VS_SVC_F_SCHED_MH_PORT,
  persistenceSeconds: 600,
};
const marked: VirtualServer = {
  key: { kind: 'mark', family: 'IPv4', mark: 0x6e67_0001 },
  scheduler: 'rr',
  flags: 0,
  persistenceSeconds: 0,
};
const endpoint = { address: parseIp('10.244.1.5'), port: 8080 };

/** The nest IPVS_CMD_ATTR_SERVICE of `web`, with nothing but its key. */
const WEB_KEY =
  '30000180' +
  '0600010002000000' +
  '0600020006000000' +
  '140003000a600001000000000000000000000000' +
  '0600040000500000';

describe('virtual servers', () => {
  it.each([
    // ipvsadm -A -t 10.96.0.1:80 -s rr
    [
      newVirtualServer(IPVS, web),
      '6800000020000500b5c3006b8b0080f5010100005400018006000100020000000600020006000000140003000a60000100000000' +
        '0000000000000000060004000050000007000600727200000c00070000000000ffffffff080008000000000008000900ffffffff',
    ],
    // ipvsadm -A -t [fd00::1]:443 -s mh -b mh-port -p 600
    [
      newVirtualServer(IPVS, sticky),
      '6800000020000500b7c3006b940040f50101000054000180060001000a000000060002000600000014000300fd00000000000000' +
        '00000000000000010600040001bb0000070006006d6800000c00070011000000ffffffff08000800580200000800090080000000',
    ],
    // ipvsadm -E -t 10.96.0.1:80 -s wrr
    [
      setVirtualServer(IPVS, { ...web, scheduler: 'wrr' }),
      '6800000020000500bbc3006b9c0040f0020100005400018006000100020000000600020006000000140003000a60000100000000' +
        '0000000000000000060004000050000008000600777272000c00070000000000ffffffff080008000000000008000900ffffffff',
    ],
    // ipvsadm -A -f 1852243969 -s rr
    [
      newVirtualServer(IPVS, marked),
      '4c00000020000500c1c3006bb20080d201010000380001800600010002000000080005000100676e07000600727200000c000700' +
        '00000000ffffffff080008000000000008000900ffffffff',
    ],
    // ipvsadm --set 900 120 300
    [
      setIpvsTimeouts(IPVS, { tcp: 900, tcpFin: 120, udp: 300 }),
      '2c00000020000500c2c3006bb90040d20c01000008000400840300000800050078000000080006002c010000',
    ],
  ])('$operation $object is written as ipvsadm writes it', (request, captured) => {
    const bytes = Buffer.from(capturedHex(captured), 'hex');
    // libnl puts a number of its own where we put 0.
    bytes.writeUInt32LE(0, 12);
    expect(wireHex(request)).toBe(bytes.toString('hex'));
  });

  it('are named by their key alone where ipvsadm sends everything it knows', () => {
    const hex = (payload: Uint8Array) => Buffer.from(payload).toString('hex');
    expect(hex(deleteVirtualServer(IPVS, web.key).payload)).toBe(`03010000${WEB_KEY}`);
    expect(hex(virtualServerListing(IPVS).payload)).toBe('04010000');
    expect(hex(destinationListing(IPVS, web.key).payload)).toBe(`08010000${WEB_KEY}`);
  });

  it('are read back as the kernel lists them', () => {
    expect(decodeVirtualServer(LISTED)).toEqual({
      ...web,
      scheduler: 'wrr',
      statistics: { connections: 3n, packetsIn: 0n, packetsOut: 0n, bytesIn: 2n ** 40n, bytesOut: 0n },
    });
    for (const server of [web, sticky, marked]) {
      expect(decodeVirtualServer(newVirtualServer(IPVS, server).payload)).toMatchObject(server);
    }
  });
});

describe('persistence by a part of the client’s address', () => {
  it.each([
    // `ipvsadm -M 255.255.0.0`, whose bytes are in network order, and `-M 112`.
    [{ ...web, persistenceSeconds: 600 }, 'ffffffff', 'ffff0000', 'ffff0000'],
    [sticky, '80000000', '70000000', `${'ff'.repeat(14)}0000`],
  ])('of %j is read, and written', (server, all, part, mask) => {
    const { payload } = newVirtualServer(IPVS, server);
    const hex = Buffer.from(payload).toString('hex');
    expect(hex).toContain(`08000900${all}`);
    const { persistenceMask } = decodeVirtualServer(
      Buffer.from(hex.replace(`08000900${all}`, `08000900${part}`), 'hex'),
    );
    expect(Buffer.from(persistenceMask!).toString('hex')).toBe(mask);
    expect(decodeVirtualServer(payload).persistenceMask).toBeUndefined();
    const written = newVirtualServer(IPVS, { ...server, persistenceMask: persistenceMask! });
    expect(decodeVirtualServer(written.payload).persistenceMask).toEqual(persistenceMask);
  });
});

describe('destinations', () => {
  const DESTINATION =
    '0600' + '0b0002000000' + '140001000af40105000000000000000000000000' + '060002001f900000' + '0800030000000000';

  it('are written with what the kernel asks for', () => {
    const hex = (payload: Uint8Array) => Buffer.from(payload).toString('hex');
    const rest = (weight: string) => `08000400${weight}08000500000000000800060000000000`;
    const nest = (length: string, body: string) => `${length}0280${body}`;
    expect(hex(newDestination(IPVS, web.key, { ...endpoint, weight: 1 }).payload)).toBe(
      `05010000${WEB_KEY}${nest('4800', DESTINATION + rest('01000000'))}`,
    );
    expect(hex(setDestination(IPVS, web.key, { ...endpoint, weight: 0 }).payload)).toBe(
      `06010000${WEB_KEY}${nest('4800', DESTINATION + rest('00000000'))}`,
    );
    expect(hex(deleteDestination(IPVS, web.key, endpoint).payload)).toBe(
      `07010000${WEB_KEY}${nest('2800', DESTINATION.slice(0, -16))}`,
    );
  });

  it('are read back as the kernel lists them', () => {
    expect(decodeDestination(LISTED_DESTINATION, 'IPv4')).toEqual({
      ...endpoint,
      weight: 0,
      activeConnections: 0,
      inactiveConnections: 0,
      persistentConnections: 0,
    });
  });

  it('may have a limit of connections, and get packets by another way', () => {
    const { payload } = newDestination(IPVS, web.key, { ...endpoint, weight: 1 });
    // IPVS_DEST_ATTR_FWD_METHOD and IPVS_DEST_ATTR_U_THRESH, as `ipvsadm -g -x 7` sets them.
    const others = Buffer.from(payload).toString('hex').replace('0800030000000000', '0800030003000000');
    const limited = Buffer.from(others.replace('0800050000000000', '0800050007000000'), 'hex');
    expect(decodeDestination(limited, 'IPv4')).toMatchObject({ ...endpoint, forwarding: 3, connectionLimit: 7 });
  });

  it('are of the virtual server’s family where an old kernel does not say it', () => {
    const { payload } = newDestination(IPVS, sticky.key, { address: parseIp('fd00::2'), port: 80, weight: 1 });
    // IPVS_DEST_ATTR_ADDR_FAMILY becomes an attribute without a name.
    const old = Buffer.from(payload);
    old.writeUInt16LE(99, old.indexOf(Buffer.from('06000b000a00', 'hex')) + 2);
    expect(decodeDestination(old, 'IPv6').address).toEqual(parseIp('fd00::2'));
  });
});

describe('the family', () => {
  it('is asked for by name and has a number', () => {
    // ipvsadm asks with version 1; the controller's is 2.
    expect(Buffer.from(familyQuery('IPVS').payload).toString('hex')).toBe('03020000' + '09000200' + '4950565300000000');
    const kernel = new FakeNetlink((requests) => [frame(...requests.map((request) => answer(request, 16, FAMILY)))]);
    expect(resolveFamily(new Netlink(kernel), 'IPVS')).toBe(32);
  });
});

describe('settings', () => {
  it('are read', () => {
    expect(decodeTimeouts(TIMEOUTS)).toEqual({ tcp: 900, tcpFin: 120, udp: 300 });
  });
});

it('gives a value or ERR_NETLINK_DECODE for any bytes', () => {
  expectSafeDecoder(decodeVirtualServer, [LISTED, newVirtualServer(IPVS, marked).payload]);
  expectSafeDecoder((bytes) => decodeDestination(bytes, 'IPv4'), [LISTED_DESTINATION]);
  expectSafeDecoder((bytes) => ({ id: decodeFamilyId(bytes) }), [FAMILY]);
  expectSafeDecoder(decodeTimeouts, [TIMEOUTS]);
  expectSafeDecoder(decodeStatistics, [Buffer.from(STATISTICS, 'hex')]);
});

describe('connections', () => {
  // Of Linux 6.1, `cat /proc/net/ip_vs_conn`.
  const text = `Pro FromIP   FPrt ToIP     TPrt DestIP   DPrt State       Expires PEName PEData
TCP 0AF40107 9C40 0A60000C 0050 0AF40109 1F90 SYN_RECV         57
TCP 0AF40107 0000 0A60000C 0050 0AF40109 1F90 NONE         10790
IP  0AF40107 0000 6E700001 0000 0AF40109 0000 ASSURED      10790
TCP fd00:0000:0000:0000:0000:0000:0000:0001 9C40 fd00:0000:0000:0000:0000:0000:0000:000c 0050 fd00:0000:0000:0000:0000:0000:0000:0009 1F90 FIN_WAIT    10
`;
  const all = () => true;

  it('are read as the kernel prints them, and what clients of persistence are held at', () => {
    const [first, held, ofMark, v6] = parseIpvsConnections([text], all);
    expect(first).toEqual({
      protocol: 6,
      client: parseIp('10.244.1.7'),
      clientPort: 40000,
      virtual: parseIp('10.96.0.12'),
      virtualPort: 80,
      server: parseIp('10.244.1.9'),
      serverPort: 8080,
      state: 'SYN_RECV',
      expiresSeconds: 57,
    });
    expect(held).toMatchObject({ clientPort: 0, state: 'NONE' });
    expect(ofMark).toMatchObject({ protocol: 0, virtual: parseIp('110.112.0.1'), serverPort: 0 });
    expect(v6).toMatchObject({ virtual: parseIp('fd00::c'), server: parseIp('fd00::9'), state: 'FIN_WAIT' });
  });

  it('are the same however the text is cut, and no more than are wanted', () => {
    const whole = parseIpvsConnections([text], all);
    for (const size of [1, 7, 80]) {
      const pieces = text.match(new RegExp(`[^]{1,${size}}`, 'g'))!;
      expect(parseIpvsConnections(pieces, all)).toEqual(whole);
    }
    expect(parseIpvsConnections([text], ({ clientPort }) => clientPort === 0)).toHaveLength(2);
  });
});

const FAMILY = capturedPayload(
  '2400000010000000b4c3006b8b0000a8' + '01020000' + '09000200495056530000000006000100200000',
);
const TIMEOUTS = capturedPayload(
  '2c00000020000000c6c3006bc70040d10c01000008000400840300000800050078000000080006002c010000',
);
/** With three connections and 2^40 bytes put in by hand. */
const STATISTICS =
  '0c0001000300000000000000' +
  '0c0002000000000000000000' +
  '0c0003000000000000000000' +
  '0c0004000000000000010000' +
  '0c0005000000000000000000' +
  '0c0006000000000000000000' +
  '0c0007000000000000000000' +
  '0c0008000000000000000000' +
  '0c0009000000000000000000' +
  '0c000a000000000000000000';
const LISTED = capturedPayload(
  '4001000020000200c5c3006bc00080d1010100002c01010006000100020000000600020006000000140003000a60000100000000' +
    '0000000000000000060004000050000008000600777272000c00070002000000ffffffff080008000000000008000900ffffffff' +
    '5c000a000800010000000000080002000000000008000300000000000c00040000000000000000000c00050000000000000000' +
    '00080006000000000008000700000000000800080000000000080009000000000008000a0000000000' +
    `7c000c00${STATISTICS}`,
);
const LISTED_DESTINATION = capturedPayload(
  '6401000020000200c5c3006bc000400c0501000050010200140001000af40105000000000000000000000000060002001f900000' +
    '0800030000000000080004000000000005000d000000000006000e000000000006000f00000000000800050000000000080006' +
    '0000000000080007000000000008000800000000000800090000000000' +
    '06000b0002000000' +
    '5c000a000800010000000000080002000000000008000300000000000c00040000000000000000000c00050000000000000000' +
    '00080006000000000008000700000000000800080000000000080009000000000008000a0000000000' +
    `7c000c00${STATISTICS}`,
);
