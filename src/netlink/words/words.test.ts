import { describe, expect, it } from 'vitest';
import { frame, refuse } from '../../../test/fakes/fake-netlink.ts';
import { RULE_FORMS } from '../../../test/fakes/nftables-forms.ts';
import { changesText } from '../../../test/fakes/nftables-text.ts';
import { parseCidr, parseIp } from '../../core/index.ts';
import { encodeBody } from '../attribute-set.ts';
import { flowListing } from '../conntrack/index.ts';
import { familyQuery } from '../generic-family.ts';
import { type IpSet, newIpSet } from '../ipset/index.ts';
import { type NetlinkRequest, readMessages } from '../message.ts';
import { BatchEncoder, type NftChange } from '../nftables/index.ts';
import { newNeighbour, newNexthop, newRoute, newVxlan } from '../route/index.ts';
import { CTRL_ATTRIBUTES, GENL_ID_CTRL, genlmsghdr } from '../uapi/genetlink.ts';
import { IPVS_CMD, IPVS_CMD_ATTRIBUTES } from '../uapi/ip-vs.ts';
import { NETLINK_GENERIC, NETLINK_NETFILTER, NETLINK_ROUTE } from '../uapi/netlink.ts';
import { setWireguard } from '../wireguard/index.ts';
import { NetlinkWords } from './words.ts';

const SECRET = new Uint8Array(32).fill(0xee);

const T = { family: 'ip', table: 't' } as const;
const message = ({ type, flags = 0, payload }: Pick<NetlinkRequest, 'type' | 'payload'> & { flags?: number }) => ({
  type,
  flags,
  sequence: 1,
  portId: 1,
  payload,
});

it('says what a transaction of nf_tables changes as the transaction itself does', () => {
  const changes: NftChange[] = [
    { operation: 'create', object: { kind: 'table', family: 'ip', name: 't', comment: 'ours' } },
    { operation: 'add', object: { kind: 'set', ...T, name: 's', key: ['ipv4_addr', 'inet_service'], data: 'verdict' } },
    {
      operation: 'add',
      object: { kind: 'chain', ...T, name: 'c', base: { type: 'filter', hook: 'input', priority: -9 } },
    },
    ...RULE_FORMS.filter(({ family }) => family === undefined).map(
      ({ expressions }): NftChange => ({
        operation: 'add',
        object: { kind: 'rule', ...T, chain: 'c', expressions, comment: 'x' },
      }),
    ),
    { operation: 'insert', object: { kind: 'rule', ...T, chain: 'c', expressions: [{ kind: 'notrack' }] } },
    {
      operation: 'add',
      object: {
        kind: 'elements',
        ...T,
        set: 's',
        elements: [{ key: Uint8Array.of(10, 0, 0, 1, 0, 80, 0, 0), verdict: { kind: 'drop' }, comment: 'web' }],
      },
    },
    { operation: 'delete', object: { kind: 'rule', ...T, chain: 'c', handle: 7 } },
    { operation: 'delete', object: { kind: 'chain', ...T, name: 'c' } },
    { operation: 'flush', object: { kind: 'set', ...T, name: 's' } },
    { operation: 'flush', object: { kind: 'chain', ...T, name: 'c' } },
    { operation: 'flush', object: { kind: 'table', family: 'ip', name: 't' } },
    { operation: 'delete', object: { kind: 'set', ...T, name: 's' } },
  ];
  const words = new NetlinkWords();
  const said = [...readMessages(new BatchEncoder().encode(changes, 1).bytes)].map((each) =>
    words.describe(NETLINK_NETFILTER, true, each),
  );
  expect(said.flatMap((each) => each?.lines ?? []).join('\n')).toBe(changesText(changes).trimEnd());
  expect(said.map((each) => each?.name).slice(0, 3)).toEqual([
    'NFNL_MSG_BATCH_BEGIN',
    'NFT_MSG_NEWTABLE',
    'NFT_MSG_NEWSET',
  ]);
});

describe('other messages', () => {
  const words = new NetlinkWords();

  it('of ipset', () => {
    const set: IpSet = {
      name: 'web',
      type: 'hash:ip,port',
      family: 'IPv4',
      maxElements: 9,
      ports: undefined,
      marks: false,
    };
    expect(words.describe(NETLINK_NETFILTER, true, message(newIpSet(set, 5)))).toEqual({
      name: 'IPSET_CMD_CREATE',
      lines: [
        'IPSET_ATTR_PROTOCOL 6 IPSET_ATTR_SETNAME "web" IPSET_ATTR_TYPENAME "hash:ip,port" IPSET_ATTR_REVISION 5 ' +
          'IPSET_ATTR_FAMILY 2 IPSET_ATTR_DATA { IPSET_ATTR_MAXELEM 9 }',
      ],
    });
  });

  it('of conntrack', () => {
    const ip = parseIp('10.96.0.1');
    const request = flowListing({ family: 'IPv4', destination: { protocol: 17, ip, port: 53 } });
    expect(words.describe(NETLINK_NETFILTER, true, message(request))).toEqual({
      name: 'IPCTNL_MSG_CT_GET',
      lines: [
        'CTA_TUPLE_ORIG { CTA_TUPLE_IP { CTA_IP_V4_DST 10.96.0.1 } CTA_TUPLE_PROTO { CTA_PROTO_NUM 17 CTA_PROTO_DST_PORT 53 } } ' +
          'CTA_FILTER { CTA_FILTER_ORIG_FLAGS 42 CTA_FILTER_REPLY_FLAGS 0 }',
      ],
    });
  });

  it('of IPVS, once the controller has told its number', () => {
    const address = Uint8Array.of(10, 96, 0, 1, ...new Array(12).fill(0));
    const values = { IPVS_CMD_ATTR_SERVICE: { IPVS_SVC_ATTR_ADDR: address, IPVS_SVC_ATTR_PORT: 80 } };
    const payload = encodeBody(genlmsghdr, { cmd: IPVS_CMD.IPVS_CMD_NEW_SERVICE }, IPVS_CMD_ATTRIBUTES, values);
    const request = message({ type: 33, payload });
    expect(words.describe(NETLINK_GENERIC, true, request)).toBeUndefined();
    expect(words.describe(NETLINK_GENERIC, true, message(familyQuery('IPVS')))).toEqual({
      name: 'CTRL_CMD_GETFAMILY',
      lines: ['CTRL_ATTR_FAMILY_NAME "IPVS"'],
    });
    const family = { CTRL_ATTR_FAMILY_ID: 33, CTRL_ATTR_FAMILY_NAME: 'IPVS' };
    const answer = encodeBody(genlmsghdr, { cmd: 1 }, CTRL_ATTRIBUTES, family);
    words.describe(NETLINK_GENERIC, false, message({ type: GENL_ID_CTRL, payload: answer }));
    expect(words.describe(NETLINK_GENERIC, true, request)).toEqual({
      name: 'IPVS_CMD_NEW_SERVICE',
      lines: ['IPVS_CMD_ATTR_SERVICE { IPVS_SVC_ATTR_ADDR 10.96.0.1 IPVS_SVC_ATTR_PORT 80 }'],
    });
  });

  it('of WireGuard, without its keys', () => {
    const answer = encodeBody(genlmsghdr, { cmd: 1 }, CTRL_ATTRIBUTES, {
      CTRL_ATTR_FAMILY_ID: 34,
      CTRL_ATTR_FAMILY_NAME: 'wireguard',
    });
    words.describe(NETLINK_GENERIC, false, message({ type: GENL_ID_CTRL, payload: answer }));
    const peer = {
      publicKey: new Uint8Array(32).fill(2),
      presharedKey: SECRET,
      allowedIps: [parseCidr('10.2.0.0/16')],
    };
    const [request] = setWireguard(34, 5, { privateKey: SECRET, port: 51820, peers: [peer] });
    expect(words.describe(NETLINK_GENERIC, true, message(request!))).toEqual({
      name: 'WG_CMD_SET_DEVICE',
      lines: [
        'WGDEVICE_A_IFINDEX 5 WGDEVICE_A_PRIVATE_KEY (32 bytes) WGDEVICE_A_LISTEN_PORT 51820 WGDEVICE_A_PEERS { { ' +
          `WGPEER_A_PUBLIC_KEY 0x${'02'.repeat(32)} WGPEER_A_PRESHARED_KEY (32 bytes) WGPEER_A_ALLOWEDIPS { { ` +
          'WGALLOWEDIP_A_FAMILY 2 WGALLOWEDIP_A_IPADDR 0x0a020000 WGALLOWEDIP_A_CIDR_MASK 16 } } } }',
      ],
    });
  });

  it.each([
    [
      newRoute({ destination: parseCidr('fd02::/64'), nexthopId: 7, protocol: 80, mtu: 1400 }),
      'rtm_family 10 rtm_dst_len 64 rtm_table 254 rtm_protocol 80 rtm_type 1 RTA_DST fd02:: RTA_NH_ID 7 RTA_METRICS { RTAX_MTU 1400 }',
    ],
    [
      newNexthop({ id: 7, gateway: parseIp('192.0.2.1'), outInterface: 4, onlink: true }),
      'nh_family 2 nh_protocol 4 nh_flags 4 NHA_ID 7 NHA_GATEWAY 192.0.2.1 NHA_OIF 4',
    ],
    [
      newNeighbour({ index: 4, family: 'bridge', lladdr: Uint8Array.of(2, 0, 0, 0, 0, 1), ip: parseIp('192.0.2.1') }),
      'ndm_family 7 ndm_ifindex 4 ndm_state 128 ndm_flags 2 NDA_DST 192.0.2.1 NDA_LLADDR 0x020000000001',
    ],
    [
      newVxlan({ name: 'vx0', mac: Uint8Array.of(2, 0, 0, 0, 0, 1), vni: 5, port: 4789, local: parseIp('fd00::') }),
      'IFLA_ADDRESS 0x020000000001 IFLA_IFNAME "vx0" IFLA_LINKINFO { IFLA_INFO_KIND "vxlan" IFLA_INFO_DATA { IFLA_VXLAN_ID 5 ' +
        'IFLA_VXLAN_LOCAL6 fd00:: IFLA_VXLAN_LEARNING 0 IFLA_VXLAN_PORT 4789 } }',
    ],
  ])('of rtnetlink: $operation', (request, text) => {
    expect(words.describe(NETLINK_ROUTE, true, message(request))).toEqual({ name: request.operation, lines: [text] });
  });

  it('that refuse', () => {
    const [refusal] = readMessages(
      frame(refuse(message({ type: 17, payload: new Uint8Array() }), 2, { text: 'no such link' })),
    );
    expect(words.describe(NETLINK_ROUTE, false, refusal!)).toEqual({
      name: 'NLMSG_ERROR',
      lines: ['refused: ENOENT (no such link)'],
    });
  });
});
