import { describe, expect, it } from 'vitest';
import { type IpFamily, parseCidr, parseIp } from '../../core/index.ts';
import { FLANNEL_ANNOTATIONS, type Node, OUR_FLANNEL_ANNOTATION } from '../../kube/index.ts';
import type { OwnEnd, RouteEvent } from '../sync/events.ts';
import { publishedAnnotations, withdrawnAnnotations } from './flannel-wants.ts';
import { OwnEnds } from './own-ends.ts';

const mac = Uint8Array.of(2, 0, 0, 0, 0, 1);
const END4: OwnEnd = { address: parseIp('192.0.2.1'), mac, ranges: [parseCidr('10.244.1.0/24')], mtu: 1450 };
const END6: OwnEnd = { address: parseIp('fd00::1'), mac, ranges: [parseCidr('fd00:1::/64')], mtu: 1430 };
const figures = { peers: { direct: 0, tunnel: 0, wireguard: 0 }, wanted: 0, inKernel: 0, leftOut: 0 };

const synced = (own: OwnEnd): RouteEvent => {
  const { family } = own.address;
  return { family, kind: 'synced', full: true, seconds: 0, operations: 0, figures, own };
};
const waiting = (family: IpFamily): RouteEvent => ({ family, kind: 'waiting', reason: 'no pod CIDR' });
const failed = (family: IpFamily): RouteEvent => ({ family, kind: 'syncFailed', error: new Error(), retryInMs: 1 });

describe('OwnEnds', () => {
  it('are not known before every family has been tried', () => {
    const ends = new OwnEnds(['IPv4', 'IPv6']);
    expect(ends.apply(synced(END4))).toBe(false);
    expect(ends.apply({ family: 'IPv6', kind: 'disturbed' })).toBe(false);
    expect(ends.ends).toBeUndefined();
    expect(ends.apply(synced(END6))).toBe(true);
    expect(ends.ends).toEqual([END4, END6]);
  });

  it.each([waiting('IPv6'), failed('IPv6')])('are those of the other family when one has none: %j', (event) => {
    const ends = new OwnEnds(['IPv4', 'IPv6']);
    ends.apply(event);
    expect(ends.apply(synced(END4))).toBe(true);
    expect(ends.ends).toEqual([END4]);
  });

  it('are none while no family has routes', () => {
    const ends = new OwnEnds(['IPv4', 'IPv6']);
    expect([ends.apply(waiting('IPv6')), ends.apply(failed('IPv4'))]).toEqual([false, false]);
  });

  it('change with what others have to know, and stay through failures', () => {
    const ends = new OwnEnds(['IPv4']);
    ends.apply(synced(END4));
    expect(ends.apply(synced({ ...END4, mac: Uint8Array.from(mac) }))).toBe(false);
    expect(ends.apply(failed('IPv4'))).toBe(false);
    for (const change of [
      { mtu: 1400 },
      { mac: Uint8Array.of(2, 0, 0, 0, 0, 2) },
      { address: parseIp('192.0.2.2') },
      { ranges: [parseCidr('10.244.2.0/24')] },
    ]) {
      expect(ends.apply(synced({ ...END4, ...change }))).toBe(true);
    }
  });
});

describe('publishedAnnotations', () => {
  it.each(['vxlan', 'auto'] as const)('%s is vxlan to flannel, and they bear our mark', (mode) => {
    expect(publishedAnnotations([END4, END6], mode, 7)).toEqual({
      [FLANNEL_ANNOTATIONS.managed]: 'true',
      [FLANNEL_ANNOTATIONS.backendType]: 'vxlan',
      [FLANNEL_ANNOTATIONS.backendData]: '{"VNI":7,"VtepMAC":"02:00:00:00:00:01"}',
      [FLANNEL_ANNOTATIONS.backendV6Data]: '{"VNI":7,"VtepMAC":"02:00:00:00:00:01"}',
      [FLANNEL_ANNOTATIONS.publicIp]: '192.0.2.1',
      [FLANNEL_ANNOTATIONS.publicIpv6]: 'fd00::1',
      [OUR_FLANNEL_ANNOTATION]: 'true',
    });
  });

  it('host-gw', () => {
    expect(publishedAnnotations([END4], 'host-gw', 7)).toMatchObject({
      [FLANNEL_ANNOTATIONS.backendType]: 'host-gw',
      [FLANNEL_ANNOTATIONS.backendData]: 'null',
    });
  });
});

describe('withdrawnAnnotations', () => {
  const node = (annotations?: Record<string, string>): Node => ({
    kind: 'Node',
    metadata: { name: 'n', namespace: '', ...(annotations && { annotations }) },
  });

  it('takes away all that is ours, and nothing of flannel', () => {
    const ours = publishedAnnotations([END4], 'host-gw', 1) as Record<string, string>;
    const withdrawn = withdrawnAnnotations(node(ours));
    expect(Object.keys(withdrawn)).toEqual(expect.arrayContaining(Object.keys(ours)));
    expect(new Set(Object.values(withdrawn))).toEqual(new Set([undefined]));
    expect(withdrawnAnnotations(node({ [FLANNEL_ANNOTATIONS.managed]: 'true' }))).toEqual({});
    expect(withdrawnAnnotations(node())).toEqual({});
  });
});
