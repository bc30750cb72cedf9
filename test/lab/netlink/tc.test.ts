import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { isExists } from '../../../src/core/index.ts';
import type { Netlink } from '../../../src/netlink/index.ts';
import {
  deleteLink,
  getLink,
  listIngressFilters,
  listQdiscs,
  newIfb,
  newIngressQdisc,
  redirectIngress,
  setTokenBucket,
} from '../../../src/netlink/route/index.ts';
import { createNamespace, removeAll, type TestNamespace } from '../namespace.ts';
import { openIn } from './witness.ts';

let node: TestNamespace;
let netlink: Netlink;
let veth: number;

beforeAll(() => {
  node = createNamespace('tc');
  node.run('ip', 'link', 'add', 'v0', 'type', 'veth', 'peer', 'name', 'v1');
  netlink = openIn(node);
  veth = getLink(netlink, { name: 'v0' })!.index;
});

afterAll(() => {
  netlink?.close();
  removeAll();
});

function qdiscs(device: string): unknown[] {
  return JSON.parse(node.run('tc', '-j', '-d', 'qdisc', 'show', 'dev', device));
}

describe('a token bucket', () => {
  it('is not there at first', () => {
    expect(listQdiscs(netlink, veth)).toEqual([]);
  });

  it.each([
    { rate: 125_000, burst: 4_096, limit: 7_221 },
    { rate: 1_000_000, burst: 16_000, limit: 41_000 },
    { rate: 5_000_000_000, burst: 512_000_000, limit: 637_000_000 },
  ])('is set, or changed, and read back: %o', (bucket) => {
    netlink.execute(setTokenBucket(veth, bucket));
    const [seen] = qdiscs('v0') as { kind: string; root: boolean; options: { rate: number; burst: number } }[];
    expect(seen).toMatchObject({ kind: 'tbf', root: true, options: { rate: bucket.rate } });
    const [{ tokenBucket } = { tokenBucket: undefined }] = listQdiscs(netlink, veth);
    expect(tokenBucket).toMatchObject({ rate: bucket.rate, limit: bucket.limit });
    // The kernel keeps a time, in units of 64 ns.
    expect(Math.abs(tokenBucket!.burst - bucket.burst)).toBeLessThanOrEqual(1 + bucket.rate * 64e-9);
  });
});

describe('a redirection of what a device receives', () => {
  it('goes to the device named, until that one is deleted', () => {
    netlink.execute(newIfb({ name: 'ifb7', mtu: 1450 }));
    const ifb = getLink(netlink, { name: 'ifb7' })!;
    expect(ifb).toMatchObject({ kind: 'ifb', mtu: 1450, up: true });
    netlink.execute(newIngressQdisc(veth), redirectIngress(veth, ifb.index));
    expect(listQdiscs(netlink, veth).map(({ kind }) => kind)).toEqual(['tbf', 'ingress']);
    expect(listIngressFilters(netlink, veth).filter(({ redirectsTo }) => redirectsTo !== undefined)).toEqual([
      { index: veth, kind: 'u32', redirectsTo: ifb.index },
    ]);
    expect(node.run('tc', 'filter', 'show', 'dev', 'v0', 'ingress')).toContain(
      'mirred (Egress Redirect to device ifb7)',
    );
    expect(() => netlink.execute(newIngressQdisc(veth))).toThrow(expect.toSatisfy(isExists));
    netlink.execute(deleteLink({ index: ifb.index }));
    expect(listIngressFilters(netlink, veth).every(({ redirectsTo }) => redirectsTo !== ifb.index)).toBe(true);
  });
});
