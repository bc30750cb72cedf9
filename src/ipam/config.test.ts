import { describe, expect, it } from 'vitest';
import { formatCidr, formatIp } from '../core/index.ts';
import { parseIpamConfig } from './config.ts';
import { formatRangeSet } from './ranges/range.ts';

describe('parseIpamConfig', () => {
  it('reads the present form', () => {
    const config = parseIpamConfig({
      type: 'host-local',
      ranges: [[{ subnet: '10.244.1.0/24' }], [{ subnet: 'fd00::/64', gateway: 'fd00::9' }]],
      routes: [{ dst: '0.0.0.0/0' }, { dst: '10.9.0.0/16', gw: '10.244.1.7' }],
      dataDir: '/tmp/x',
      resolvConf: '/etc/resolv.conf',
      somethingNew: { a: 1 },
    });
    expect(config.rangeSets.map(formatRangeSet)).toEqual([
      '10.244.1.1-10.244.1.254',
      'fd00::1-fd00::ffff:ffff:ffff:ffff',
    ]);
    expect(
      config.routes.map(({ destination, gateway }) => [formatCidr(destination), gateway && formatIp(gateway)]),
    ).toEqual([
      ['0.0.0.0/0', undefined],
      ['10.9.0.0/16', '10.244.1.7'],
    ]);
    expect(config).toMatchObject({ dataDir: '/tmp/x', resolvConf: '/etc/resolv.conf' });
  });

  it('puts the old form first, and defaults the rest', () => {
    const config = parseIpamConfig({
      subnet: '10.0.0.0/24',
      rangeStart: '10.0.0.9',
      rangeEnd: '',
      ranges: [[{ subnet: 'fd00::/126' }]],
    });
    expect(config.rangeSets.map(formatRangeSet)).toEqual(['10.0.0.9-10.0.0.254', 'fd00::1-fd00::3']);
    expect(config).toMatchObject({ dataDir: '/var/lib/cni/networks', resolvConf: undefined, routes: [] });
  });

  it.each<[Record<string, unknown>, string]>([
    [{}, 'Cannot use ipam: it names no address range, give "ranges" or "subnet"'],
    [{ ranges: {} }, 'Cannot use ipam.ranges {}: it must be a list'],
    [{ ranges: [{ subnet: '10.0.0.0/24' }] }, 'Cannot use ipam.ranges[0] {"subnet":"10.0.0.0/24"}: it must be a list'],
    [{ ranges: [['10.0.0.0/24']] }, 'Cannot use ipam.ranges[0][0] "10.0.0.0/24": it must be an object'],
    [{ ranges: [[{}]] }, 'Cannot use ipam.ranges[0][0]: key "subnet" is missing'],
    [{ ranges: [[{ subnet: 5 }]] }, 'Cannot use ipam.ranges[0][0].subnet 5: it must be a string'],
    [{ subnet: '10.0.0.0/24', dataDir: 'x/y' }, 'Cannot use ipam.dataDir "x/y": it must be an absolute path'],
    [
      { subnet: '10.0.0.0/24', routes: [{ dst: 'default' }] },
      'Cannot use ipam.routes[0].dst "default": it is no destination, such as "0.0.0.0/0"',
    ],
    [
      { subnet: '10.0.0.0/24', routes: [{ dst: '0.0.0.0/0', gw: 'x' }] },
      'Cannot use ipam.routes[0].gw "x": it is no IP address',
    ],
    [
      { subnet: '10.0.0.0/24', routes: [{ dst: '::/0', gw: '10.0.0.1' }] },
      'Cannot use ipam.routes[0].gw "10.0.0.1": it is no IPv6 address as the destination is',
    ],
  ])('refuses %j', (ipam, message) => {
    expect(() => parseIpamConfig(ipam)).toThrow(expect.objectContaining({ code: 'ERR_IPAM_CONFIG', message }));
  });
});
