import { expect, it } from 'vitest';
import { formatCidr, parseAddressWithPrefix } from '../../core/index.ts';
import { parseNetworkConfig } from '../config/config.ts';
import { wantedLink } from '../drift/index.ts';
import { modeRules, podNetwork } from '../pod-networks.ts';
import { attachmentKey } from '../protocol/attachment-key.ts';
import type { ContainerId, InterfaceName, NetworkName } from '../protocol/environment.ts';
import { parseHeader } from '../protocol/header.ts';
import { attachmentNote, wantedBy } from './attachment-note.ts';

const owner = { containerId: 'c1' as ContainerId, ifname: 'eth0' as InterfaceName };
const key = attachmentKey('net' as NetworkName, owner);
const RANGES = [[{ subnet: '10.244.1.0/24' }], [{ subnet: 'fd00:1::/64' }]];
const PORTS = {
  portMappings: [
    { hostPort: 8080, containerPort: 80, protocol: 'tcp' },
    { hostPort: 53, containerPort: 5353, protocol: 'udp', hostIP: '192.0.2.1' },
  ],
};

function noted(raw: object, ips = ['10.244.1.2/24', 'fd00:1::2/64']) {
  const header = parseHeader(JSON.stringify({ cniVersion: '1.1.0', name: 'net', type: 'x', ...raw }));
  const config = parseNetworkConfig(header);
  const assigned = ips.map((text) => ({ address: parseAddressWithPrefix(text), gateway: undefined }));
  const note = attachmentNote({ config, header, key }, assigned);
  return { config, note: note && (JSON.parse(JSON.stringify(note)) as typeof note) };
}

it.each([
  ['bridge', { ipMasq: true, firewall: true, snat: false, runtimeConfig: PORTS }],
  ['bridge', { macspoofchk: true, runtimeConfig: { mac: 'c2:11:22:33:44:55' } }],
  ['routed', { ipMasq: true, masqAll: true, runtimeConfig: { PortMappings: PORTS.portMappings } }],
])('tells in mode %s what ADD knew of %j', (mode, settings) => {
  const { config, note } = noted({ mode, ...settings, ipam: { type: 'host-local', ranges: RANGES } });
  const wanted = wantedBy('net', { owner, note });
  const { reach } = modeRules(config.mode);
  const { addressing } = podNetwork(config.mode);
  expect(wanted).toMatchObject({ key, features: config.features, reach: reach(config.bridge, key) });
  expect(wanted?.reach.checksMac).toBe(config.bridge.macspoofchk);
  const ips = [
    { address: parseAddressWithPrefix('10.244.1.2/24') },
    { address: parseAddressWithPrefix('fd00:1::2/64') },
  ];
  expect(wanted?.ips).toEqual(addressing.withSubnets(config, ips));
  expect([...wanted!.mac]).toEqual([...(config.mac ?? [0x0a, 0x58, 10, 244, 1, 2])]);
});

it('keeps the prefix that another IPAM plugin gave, and in mode routed the whole address', () => {
  const ipam = { type: 'static' };
  const prefixes = (raw: object) => {
    const { note } = noted({ firewall: true, ipam, ...raw });
    return wantedBy('net', { owner, note })?.ips.map(({ address }) => address.prefixLength);
  };
  expect(prefixes({})).toEqual([24, 64]);
  expect(prefixes({ mode: 'routed' })).toEqual([32, 128]);
});

it.each([
  ['bridge', {}, ['10.244.1.1/24', 'fd00:1::1/64']],
  ['bridge', { isGateway: false }, []],
  ['routed', {}, []],
])(
  'notes in mode %s with %j what the link of an attachment without features was made with',
  (mode, settings, gateways) => {
    const { note } = noted({ mode, mtu: 1400, ...settings, ipam: { type: 'host-local', ranges: RANGES } });
    const made = wantedLink('net', { owner, note })?.made;
    expect({ ...made, gateways: made?.gateways.map(formatCidr) }).toEqual({ mtu: 1400, down: false, gateways });
  },
);

it('knows of a link that an earlier version noted what the network’s configuration tells', () => {
  const { note } = noted({ firewall: true, ingressPolicy: 'isolated', ipam: { type: 'host-local', ranges: RANGES } });
  const { link: _, ...earlier } = note!;
  const wanted = wantedLink('net', { owner, note: earlier });
  expect(wanted).toMatchObject({ made: undefined, mode: 'bridge', bridge: { hairpinMode: true, portIsolation: true } });
});

it.each([5, { gateways: ['x'] }, { gateways: [], mtu: 'x' }])('takes the note %j of a link for none', (link) => {
  const { note } = noted({ firewall: true, ipam: { type: 'host-local', ranges: RANGES } });
  expect(wantedLink('net', { owner, note: { ...note, link } })).toBeUndefined();
  expect(wantedBy('net', { owner, note: { ...note, link } })).toBeDefined();
});

it.each([undefined, {}, { mac: 'x' }, { mac: '0a:58:0a:f4:01:02', ips: ['x'] }, { mac: '0a:58:0a:f4:01:02', ips: 5 }])(
  'takes the note %j for none',
  (note) => {
    expect(wantedBy('net', { owner, note })).toBeUndefined();
  },
);
