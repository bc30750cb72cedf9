import { describe, expect, it } from 'vitest';
import { parseAddressWithPrefix, parseCidr, parseIp } from '../../../core/index.ts';
import type { NftElements } from '../../../netlink/nftables/index.ts';
import type { FirewallSettings, PortMapping, PortMappingSettings } from '../../config/feature-config.ts';
import type { NetworkMode } from '../../config/network-config.ts';
import { modeRules } from '../../pod-networks.ts';
import { attachmentKey } from '../../protocol/attachment-key.ts';
import type { ContainerId, InterfaceName, NetworkName } from '../../protocol/environment.ts';
import type { WantedAttachment } from '../wanted-attachment.ts';
import { masqueradeChain } from './pod-chains.ts';
import {
  describePortKey,
  ingressElements,
  mappedPortOf,
  masqueradeElements,
  portElements,
  portElementText,
} from './pod-elements.ts';

const key = attachmentKey('net' as NetworkName, {
  containerId: 'c1' as ContainerId,
  ifname: 'eth0' as InterfaceName,
});
const CNI0 = { name: 'cni0' as InterfaceName, vlan: 0, macspoofchk: false };
const comment = `${key.hostName} net/c1/eth0`;

function attachment(
  mappings: readonly Partial<PortMapping>[],
  settings: Partial<PortMappingSettings> = {},
  mode: NetworkMode = 'bridge',
  bridge = CNI0,
): WantedAttachment {
  const portMappings: PortMappingSettings = {
    mappings: mappings.map((mapping) => ({
      hostPort: 8080,
      containerPort: 80,
      protocol: 'tcp',
      hostIp: undefined,
      ...mapping,
    })),
    snat: true,
    masqAll: false,
    ...settings,
  };
  return {
    key,
    reach: modeRules(mode).reach(bridge, key),
    features: { ipMasq: { except: [] }, portMappings, bandwidth: undefined, macvlan: undefined, firewall: undefined },
    mac: new Uint8Array(6),
    ips: ['10.244.1.7/24', 'fd00:1::7/64'].map((text) => ({ address: parseAddressWithPrefix(text) })),
  };
}

/** Elements as text: set, key, end of the key, value, all in hexadecimal words. */
function text(sets: readonly NftElements[]): string[] {
  const hex = (bytes: Uint8Array | undefined) =>
    bytes
      ? Buffer.from(bytes)
          .toString('hex')
          .replace(/(.{8})(?=.)/g, '$1.')
      : '';
  return sets.flatMap(({ set, elements }) =>
    elements.map(({ key: first, keyEnd, data, verdict }) => {
      const value = verdict && 'chain' in verdict ? `${verdict.kind} ${verdict.chain}` : hex(data);
      return `${set} ${hex(first)}${keyEnd ? `-${hex(keyEnd)}` : ''}${value && ` : ${value}`}`;
    }),
  );
}

const IPV6_POD = 'fd000001.00000000.00000000.00000007';

describe('masqueradeElements', () => {
  it('are one for each address, naming the chain of its subnet', () => {
    const elements = masqueradeElements(attachment([]));
    expect(text(elements)).toEqual([
      'masquerade-ipv4 0af40107 : goto masquerade-10.244.1.0/24',
      `masquerade-ipv6 ${IPV6_POD} : goto masquerade-fd00-1--/64`,
    ]);
    expect(elements.flatMap((set) => set.elements.map((element) => element.comment))).toEqual([comment, comment]);
  });
});

it('pods that were made with exceptions have a chain that lets these see them', () => {
  const except = ['10.0.0.0/8', 'fd00::/8'].map(parseCidr);
  const plain = masqueradeChain(parseCidr('10.244.1.7/24'));
  const { chain, rules } = masqueradeChain(parseCidr('10.244.1.7/24'), except);
  expect([plain.chain.name, chain.name]).toEqual([
    'masquerade-10.244.1.0/24',
    expect.stringMatching(/^masquerade-10\.244\.1\.0\/24-but-[0-9a-f]+$/),
  ]);
  expect([plain.rules.length, rules.length]).toEqual([2, 3]);
  const asked = attachment([]);
  const wanted = { ...asked, features: { ...asked.features, ipMasq: { except } } };
  expect(text(masqueradeElements(wanted))[0]).toBe(`masquerade-ipv4 0af40107 : goto ${chain.name}`);
});

describe('portElements', () => {
  it('lead to the pod in both families and masquerade its neighbours and the loopback', () => {
    const elements = portElements(attachment([{}]));
    expect(text(elements)).toEqual([
      'ports-ipv4 06000000.1f900000 : 0af40107.00500000',
      `ports-ipv6 06000000.1f900000 : ${IPV6_POD}.00500000`,
      'hairpin-ipv4 06000000.1f900000.0af40107.0af40100-06000000.1f900000.0af40107.0af401ff',
      'hairpin-ipv4 06000000.1f900000.0af40107.7f000000-06000000.1f900000.0af40107.7fffffff',
      `hairpin-ipv6 06000000.1f900000.${IPV6_POD}.fd000001.00000000.00000000.00000000` +
        `-06000000.1f900000.${IPV6_POD}.fd000001.00000000.ffffffff.ffffffff`,
    ]);
    expect(elements.every((set) => set.elements.every((element) => element.comment === comment))).toBe(true);
  });

  it.each([
    ['tcp', '06'],
    ['udp', '11'],
    ['sctp', '84'],
  ] as const)('of %s', (protocol, number) => {
    const [first] = text(portElements(attachment([{ protocol }])));
    expect(first).toBe(`ports-ipv4 ${number}000000.1f900000 : 0af40107.00500000`);
  });

  it('of one address of the node are of its family only', () => {
    expect(text(portElements(attachment([{ hostIp: parseIp('192.0.2.1') }], { snat: false })))).toEqual([
      'address-ports-ipv4 c0000201.06000000.1f900000 : 0af40107.00500000',
    ]);
    expect(text(portElements(attachment([{ hostIp: parseIp('2001:db8::1') }], { snat: false })))).toEqual([
      `address-ports-ipv6 20010db8.00000000.00000000.00000001.06000000.1f900000 : ${IPV6_POD}.00500000`,
    ]);
  });

  it('of 0.0.0.0 and :: are of all addresses of their family', () => {
    expect(text(portElements(attachment([{ hostIp: parseIp('0.0.0.0') }], { snat: false })))).toEqual([
      'ports-ipv4 06000000.1f900000 : 0af40107.00500000',
    ]);
    expect(text(portElements(attachment([{ hostIp: parseIp('::') }], { snat: false })))).toEqual([
      `ports-ipv6 06000000.1f900000 : ${IPV6_POD}.00500000`,
    ]);
  });

  it('masquerade the pod alone where it has no neighbours', () => {
    const hairpins = text(portElements(attachment([{}], {}, 'routed'))).filter((line) => line.startsWith('hairpin'));
    expect(hairpins[0]).toBe('hairpin-ipv4 06000000.1f900000.0af40107.0af40107-06000000.1f900000.0af40107.0af40107');
  });

  it('masquerade everybody with masqAll and nobody without snat', () => {
    expect(text(portElements(attachment([{}], { masqAll: true }))).slice(2)).toEqual([
      'hairpin-ipv4 06000000.1f900000.0af40107.00000000-06000000.1f900000.0af40107.ffffffff',
      `hairpin-ipv6 06000000.1f900000.${IPV6_POD}.00000000.00000000.00000000.00000000` +
        `-06000000.1f900000.${IPV6_POD}.ffffffff.ffffffff.ffffffff.ffffffff`,
    ]);
    expect(text(portElements(attachment([{}], { masqAll: true, snat: false })))).toHaveLength(2);
  });

  it('share the masquerade of a port that is mapped on several addresses', () => {
    const addresses = ['192.0.2.1', '192.0.2.2'].map((ip) => ({ hostIp: parseIp(ip) }));
    const sets = portElements(attachment([...addresses, { hostIp: parseIp('192.0.2.1') }])).map(({ set }) => set);
    expect(sets).toEqual(['address-ports-ipv4', 'address-ports-ipv4', 'hairpin-ipv4', 'hairpin-ipv4']);
  });

  it('leave out a family the pod has no address of', () => {
    const ipv4Only = { ...attachment([{}, { hostIp: parseIp('2001:db8::1'), hostPort: 81 }]) };
    expect(portElements({ ...ipv4Only, ips: ipv4Only.ips.slice(0, 1) }).map(({ set }) => set)).toEqual([
      'ports-ipv4',
      'hairpin-ipv4',
      'hairpin-ipv4',
    ]);
  });

  it('refuse one port for two, and ::1', () => {
    expect(() => portElements(attachment([{}, { containerPort: 81 }]))).toThrow(
      'Cannot map host port 8080/tcp to container port 81: it leads to 80',
    );
    expect(() => portElements(attachment([{ hostIp: parseIp('::1') }]))).toThrow(
      expect.objectContaining({ cniCode: 2, message: expect.stringContaining('"::1"') }),
    );
  });
});

describe('ingressElements', () => {
  const elementsWith = (
    ingressPolicy: FirewallSettings['ingressPolicy'],
    bridge: typeof CNI0,
    mode: NetworkMode = 'bridge',
  ) => {
    const pod = attachment([], {}, mode, bridge);
    return ingressElements({ ...pod, features: { ...pod.features, firewall: { ingressPolicy } } });
  };
  const words = (name: string) =>
    Buffer.from(name.padEnd(16, '\0'))
      .toString('hex')
      .replace(/(.{8})(?=.)/g, '$1.');

  it('name the link through which the node reaches the pod', () => {
    expect(text(elementsWith('open', CNI0))).toEqual([]);
    expect(text(elementsWith('same-bridge', CNI0))).toEqual([
      `ingress-policy-ipv4 ${words('cni0')}.0af40107`,
      `ingress-policy-ipv6 ${words('cni0')}.${IPV6_POD}`,
    ]);
    expect(text(elementsWith('isolated', { ...CNI0, vlan: 7 })).slice(0, 2)).toEqual([
      `ingress-policy-ipv4 ${words('cni0.7')}.0af40107`,
      `ingress-isolated-ipv4 ${words('cni0.7')}.0af40107`,
    ]);
    expect(text(elementsWith('isolated', CNI0, 'routed'))[0]).toBe(
      `ingress-policy-ipv4 ${words(key.hostName)}.0af40107`,
    );
  });
});

describe('what is read back', () => {
  const hostIp = parseIp('192.0.2.1');
  const elements = portElements(attachment([{ protocol: 'udp' }, { hostIp, hostPort: 53 }]));

  it('tells the mapping', () => {
    const seen = elements.flatMap(mappedPortOf).map(({ family, protocol, hostPort, pod }) => {
      return `${family} ${protocol} ${hostPort} ${Buffer.from(pod.address.bytes).toString('hex')}`;
    });
    const ipv6 = IPV6_POD.replaceAll('.', '');
    expect(seen).toEqual([`IPv4 udp 8080 0af40107`, `IPv6 udp 8080 ${ipv6}`, `IPv4 tcp 53 0af40107`]);
  });

  it('is named in messages', () => {
    const names = elements.slice(0, 3).map((set) => describePortKey(set, set.elements[0]!));
    expect(names).toEqual(['Host port 8080/udp (IPv4)', 'Host port 8080/udp (IPv6)', 'Host port 192.0.2.1:53/tcp']);
  });
});

it('elements of a map of ports read as nft takes them, one that stands for all others too', () => {
  const [of] = portElements(attachment([{}]));
  const [port] = of!.elements;
  expect(portElementText(of!, port!)).toBe('{ tcp . 8080 }');
  expect(portElementText(of!, { ...port!, key: new Uint8Array() })).toBe('{ * }');
});
