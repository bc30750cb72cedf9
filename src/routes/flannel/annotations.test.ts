import { describe, expect, it } from 'vitest';
import { parseIp } from '../../core/index.ts';
import { flannelAnnotations, readFlannelVtep } from './annotations.ts';

const PREFIX = 'flannel.alpha.coreos.com';
const mac = Uint8Array.of(0x12, 0xc6, 0x65, 0x89, 0xb4, 0xe3);
/** As flannel 0.28 writes them on a dual-stack node. */
const DUAL_STACK = {
  [`${PREFIX}/backend-data`]: '{"VNI":1,"VtepMAC":"12:c6:65:89:b4:e3"}',
  [`${PREFIX}/backend-type`]: 'vxlan',
  [`${PREFIX}/backend-v6-data`]: '{"VNI":1,"VtepMAC":"12:c6:65:89:b4:e3"}',
  [`${PREFIX}/kube-subnet-manager`]: 'true',
  [`${PREFIX}/public-ip`]: '192.168.50.3',
  [`${PREFIX}/public-ipv6`]: 'fd00:50::3',
};

describe('flannelAnnotations', () => {
  it('writes what flannel writes, to the byte, in both families at once', () => {
    const family = (ip: string) => ({ backend: 'vxlan', vni: 1, mac, publicIp: parseIp(ip) }) as const;
    expect(flannelAnnotations([family('192.168.50.3'), family('fd00:50::3')])).toEqual(DUAL_STACK);
  });

  it('writes null as the data of host-gw, and nothing of the other family', () => {
    expect(flannelAnnotations([{ backend: 'host-gw', publicIp: parseIp('192.168.50.3') }])).toEqual({
      [`${PREFIX}/backend-data`]: 'null',
      [`${PREFIX}/backend-type`]: 'host-gw',
      [`${PREFIX}/kube-subnet-manager`]: 'true',
      [`${PREFIX}/public-ip`]: '192.168.50.3',
    });
  });

  it('writes a text from which flannel finds its MAC again: behind the second `":"`', () => {
    const text = flannelAnnotations([{ backend: 'vxlan', vni: 7, mac, publicIp: parseIp('10.0.0.1') }]);
    const parts = text[`${PREFIX}/backend-data`]!.replace(/^["}]+|["}]+$/g, '').split('":"');
    expect(parts).toEqual(['{"VNI":7,"VtepMAC', '12:c6:65:89:b4:e3']);
  });
});

describe('readFlannelVtep', () => {
  it('reads what flannel and we write', () => {
    expect(readFlannelVtep(DUAL_STACK, 'IPv4')).toEqual({ vni: 1, mac, publicIp: parseIp('192.168.50.3') });
    expect(readFlannelVtep(DUAL_STACK, 'IPv6')).toEqual({ vni: 1, mac, publicIp: parseIp('fd00:50::3') });
  });

  it.each([
    ['another backend', { [`${PREFIX}/backend-type`]: 'host-gw' }],
    ['a node that takes no part', { [`${PREFIX}/kube-subnet-manager`]: 'false' }],
  ])('knows nothing of %s', (_, change) => {
    expect(readFlannelVtep({ ...DUAL_STACK, ...change }, 'IPv4')).toBeUndefined();
    expect(readFlannelVtep({}, 'IPv4')).toBeUndefined();
  });

  it.each([
    'null',
    '',
    '{',
    '[]',
    '"x"',
    '{"VNI":1}',
    '{"VNI":1,"VtepMAC":"x"}',
    '{"VNI":-1,"VtepMAC":"12:c6:65:89:b4:e3"}',
  ])('says that %s names no device', (data) => {
    expect(readFlannelVtep({ ...DUAL_STACK, [`${PREFIX}/backend-data`]: data }, 'IPv4')).toEqual({
      problem: `its annotation ${PREFIX}/backend-data "${data}" names no VNI and MAC`,
    });
  });

  it('refuses addresses of a group, of another family, and texts of a megabyte', () => {
    const group = '{"VNI":1,"VtepMAC":"13:c6:65:89:b4:e3"}';
    const long = `{"VNI":1,"VtepMAC":"12:c6:65:89:b4:e3"${' '.repeat(1 << 20)}}`;
    for (const data of [group, long]) {
      const reading = readFlannelVtep({ ...DUAL_STACK, [`${PREFIX}/backend-data`]: data }, 'IPv4');
      expect(JSON.stringify(reading).length).toBeLessThan(300);
      expect(reading).toHaveProperty('problem');
    }
    expect(readFlannelVtep({ ...DUAL_STACK, [`${PREFIX}/public-ip`]: 'fd00::1' }, 'IPv4')).toEqual({
      problem: `its annotation ${PREFIX}/public-ip "fd00::1" is no IPv4 address`,
    });
  });
});
