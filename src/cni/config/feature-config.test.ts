import { describe, expect, it } from 'vitest';
import { formatCidr, formatIp } from '../../core/index.ts';
import { parseFeatures } from './feature-config.ts';
import { runtimeConfigOf } from './runtime-config.ts';

const parse = (raw: object) => parseFeatures(raw as never, runtimeConfigOf(raw as never));

it('asks for nothing by default', () => {
  expect(parse({})).toEqual({ ipMasq: undefined, portMappings: undefined, bandwidth: undefined, firewall: undefined });
  expect(parse({ snat: false, masqAll: true, runtimeConfig: { portMappings: [] } }).portMappings).toBeUndefined();
});

it('ipMasq has destinations that see the pod', () => {
  expect(parse({ ipMasq: true }).ipMasq).toEqual({ except: [] });
  const except = (nonMasqueradeCidrs: unknown) => parse({ ipMasq: true, nonMasqueradeCidrs }).ipMasq?.except;
  expect(except(['10.244.0.0/16', 'fd00::/48'])?.map(formatCidr)).toEqual(['10.244.0.0/16', 'fd00::/48']);
  expect(() => except(['10.244.0.0/16', 'all'])).toThrow('nonMasqueradeCidrs[1] "all": it is no CIDR');
  expect(() => except('10.244.0.0/16')).toThrow('it must be a list of strings');
});

describe('portMappings', () => {
  it('are read in any case, as containerd writes them', () => {
    const PortMappings = [
      { HostPort: 8080, ContainerPort: 80, Protocol: 'TCP', HostIP: '127.0.0.1' },
      { hostPort: 53, containerPort: 5353, protocol: 'udp', hostIP: '' },
      { hostPort: 9, containerPort: 9, protocol: '', hostIP: '::' },
    ];
    const { portMappings } = parse({ runtimeConfig: { PortMappings } });
    const { mappings, ...settings } = portMappings!;
    expect(mappings.map((mapping) => ({ ...mapping, hostIp: mapping.hostIp && formatIp(mapping.hostIp) }))).toEqual([
      { hostPort: 8080, containerPort: 80, protocol: 'tcp', hostIp: '127.0.0.1' },
      { hostPort: 53, containerPort: 5353, protocol: 'udp', hostIp: undefined },
      { hostPort: 9, containerPort: 9, protocol: 'tcp', hostIp: '::' },
    ]);
    expect(settings).toEqual({ snat: true, masqAll: false });
  });

  it('without host port ask for nothing', () => {
    const portMappings = [
      { containerPort: 80, protocol: 'tcp' },
      { hostPort: 0, containerPort: 81 },
    ];
    expect(parse({ runtimeConfig: { portMappings } }).portMappings).toBeUndefined();
  });

  it.each<[object, string]>([
    [{ hostPort: 65536, containerPort: 1 }, 'runtimeConfig.portMappings[0].hostPort 65536'],
    [{ hostPort: '80', containerPort: 1 }, 'runtimeConfig.portMappings[0].hostPort "80"'],
    [{ hostPort: 80, containerPort: 0 }, 'runtimeConfig.portMappings[0].containerPort 0'],
    [{ hostPort: 80 }, 'key "containerPort" is missing'],
    [{ hostPort: 80, containerPort: 80, protocol: 'icmp' }, 'runtimeConfig.portMappings[0].protocol "icmp"'],
    [{ hostPort: 80, containerPort: 80, hostIP: 'x' }, 'runtimeConfig.portMappings[0].hostIP "x"'],
    [5 as never, 'runtimeConfig.portMappings[0] 5'],
  ])('like %j are refused', (mapping, text) => {
    expect(() => parse({ runtimeConfig: { portMappings: [mapping] } })).toThrow(
      expect.objectContaining({ cniCode: 7, message: expect.stringContaining(text) }),
    );
  });

  it.each<[object, string]>([
    [{ markMasqBit: 32 }, 'markMasqBit 32'],
    [{ conditionsV6: 'x' }, 'conditionsV6 "x"'],
    [{ snat: 1 }, 'snat 1'],
    [{ ipMasqBackend: 'ebtables' }, 'ipMasqBackend "ebtables"'],
    [{ ingressPolicy: 'closed' }, 'ingressPolicy "closed"'],
  ])('and other features with %j are refused', (raw, text) => {
    expect(() => parse(raw)).toThrow(
      expect.objectContaining({ cniCode: 7, message: expect.stringContaining(`Cannot use ${text}`) }),
    );
  });

  it.each([{ conditionsV4: ['-s', '10.0.0.0/8'] }, { conditionsV6: ['ip6', 'saddr', 'fd00::/8'] }])(
    'with %j are refused, and nothing else is',
    (conditions) => {
      expect(parse(conditions).portMappings).toBeUndefined();
      const [[key, words]] = Object.entries(conditions) as [[string, string[]]];
      expect(() =>
        parse({ ...conditions, runtimeConfig: { portMappings: [{ hostPort: 1, containerPort: 1 }] } }),
      ).toThrow(
        expect.objectContaining({
          cniCode: 2,
          message: expect.stringContaining(
            `Key "${key}" has the unsupported value ${JSON.stringify(words)}: it is text`,
          ),
        }),
      );
    },
  );
});

describe('bandwidth', () => {
  it('of the network beats that of the runtime', () => {
    const runtimeConfig = { Bandwidth: { IngressRate: 1, IngressBurst: 2 } };
    expect(parse({ runtimeConfig }).bandwidth).toEqual({ ingress: { rate: 1, burst: 2 }, egress: undefined });
    expect(parse({ runtimeConfig, egressRate: 3, egressBurst: 4 }).bandwidth).toEqual({
      ingress: undefined,
      egress: { rate: 3, burst: 4 },
    });
  });

  it('has no burst larger than the kernel can count, though runtimes ask for one', () => {
    const bandwidth = { ingressRate: 1e6, ingressBurst: 2 ** 35 };
    expect(parse({ runtimeConfig: { bandwidth } }).bandwidth!.ingress!.burst).toBe((2 ** 32 - 1) * 8);
  });

  it('of 0 is none', () => {
    expect(parse({ ingressRate: 0, ingressBurst: 0, runtimeConfig: { bandwidth: {} } }).bandwidth).toBeUndefined();
  });

  it.each([
    [{ ingressRate: 1 }, 'Cannot use ingressRate 1: it needs ingressBurst beside it'],
    [{ egressBurst: 1 }, 'Cannot use egressBurst 1: it needs egressRate beside it'],
    [{ ingressRate: -1, ingressBurst: 1 }, /^Cannot use ingressRate -1: it must be a whole number/],
    [{ runtimeConfig: { bandwidth: { egressRate: 1 } } }, /^Cannot use runtimeConfig\.bandwidth\.egressRate 1/],
    [{ runtimeConfig: { bandwidth: 5 } }, 'Cannot use runtimeConfig.bandwidth 5: it must be an object'],
  ])('of %j is refused', (raw, message) => {
    expect(() => parse(raw)).toThrow(message);
  });
});

it('has a firewall when asked for one, or for a policy of one, unless told not to', () => {
  expect(parse({ firewall: true }).firewall).toEqual({ ingressPolicy: 'open' });
  expect(parse({ ingressPolicy: 'isolated' }).firewall).toEqual({ ingressPolicy: 'isolated' });
  expect(parse({ firewall: false, ingressPolicy: 'open' }).firewall).toBeUndefined();
});
