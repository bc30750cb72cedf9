import { expect, it } from 'vitest';
import { nodeObject } from '../../../../test/fakes/routes/node-objects.ts';
import { parseCidr, parseIp } from '../../../core/index.ts';
import { decodeObject, KINDS, type PodCIDRBlock } from '../../../kube/index.ts';
import { blockName, parsePools } from '../../../pools/index.ts';
import { checkAddresses, type IpamFacts } from './check-addresses.ts';
import { ipamReport } from './ipam-report.ts';

const MAKER = { bootId: 'b', process: '1:1', pidns: undefined, netns: undefined, begunMs: 0 };

function block(cidr: string, spec: object = {}): PodCIDRBlock {
  const value = { metadata: { name: blockName(cidr) }, spec: { cidr, node: 'me', nodeUID: 'uid', ...spec } };
  return decodeObject(KINDS.PodCIDRBlock, value).object!;
}

const reserved = (address: string, network = 'pods', owner = 'c1 eth0') => ({
  address: parseIp(address),
  network,
  owner,
  path: `/data/${network}/${address}`,
});
const inUse = (address: string, netns = '/run/netns/a') => ({ address: parseIp(address), netns });
const entry = (...addresses: string[]) => ({
  name: 'npabc',
  owner: { containerId: 'c1', ifname: 'eth0' },
  addresses: addresses.map(parseIp),
  features: [],
  note: undefined,
  maker: MAKER,
  complete: true,
});
const me = nodeObject({ name: 'me', ips: [], podCidrs: [] });
const NODE = { ...me, metadata: { ...me.metadata, uid: 'uid' } };

function check(facts: Partial<IpamFacts>) {
  const findings = checkAddresses({
    nodeName: 'me',
    reserved: [],
    attached: [],
    gone: [],
    inUse: [],
    ranges: [parseCidr('10.1.0.0/26')],
    pools: [parseCidr('10.1.0.0/16')],
    cluster: undefined,
    use: () => ({ used: 0, free: 61 }),
    ...facts,
  });
  return findings.map(({ kind, what }) => `${kind} ${what}`);
}

it('finds nothing where each address is reserved for a pod that has it', () => {
  const facts = { reserved: [reserved('10.1.0.2')], inUse: [inUse('10.1.0.2'), inUse('192.168.0.1')] };
  expect(check({ ...facts, attached: [entry('10.1.0.2')] })).toEqual([]);
  expect(check(facts)).toEqual([]);
});

it('finds a range of pods that overlaps one of Services', () => {
  const serviceRanges = ['10.96.0.0/12', 'fd00:96::/112'].map(parseCidr);
  const ranges = ['10.1.0.0/26', '10.100.0.0/24'].map(parseCidr);
  expect(check({ ranges, serviceRanges })).toEqual(['serviceRange 10.100.0.0/24']);
});

it('finds addresses of containers that are gone, noted or not', () => {
  const gone = [{ ...entry('10.1.0.2'), network: 'pods' }];
  expect(check({ reserved: [reserved('10.1.0.2')], gone })).toEqual(['gone 10.1.0.2']);
  expect(check({ reserved: [reserved('10.1.0.3')] })).toEqual(['unused 10.1.0.3']);
  expect(check({ reserved: [reserved('10.1.0.3')], inUse: undefined })).toEqual([]);
});

it('finds addresses in use that are not reserved, and what two have', () => {
  expect(check({ inUse: [inUse('10.1.0.9')] })).toEqual(['unreserved 10.1.0.9']);
  const twice = [reserved('10.1.0.2'), reserved('10.1.0.2', 'other')];
  expect(check({ reserved: twice, inUse: [inUse('10.1.0.2')] })).toEqual(['reservedTwice 10.1.0.2']);
  const both = [inUse('10.1.0.2'), inUse('10.1.0.2', '/run/netns/b')];
  expect(check({ reserved: [reserved('10.1.0.2')], inUse: both })).toEqual(['usedTwice 10.1.0.2']);
});

it('takes nothing for unreserved or unused where it is not known what is reserved', () => {
  const cluster = { node: NODE, blocks: ['10.1.0.0/26', '10.1.0.64/26'].map((cidr) => block(cidr)) };
  const unknown = { reserved: undefined, use: undefined, inUse: [inUse('10.1.0.9')] };
  expect(check({ ...unknown, cluster })).toEqual([]);
  const both = [inUse('10.1.0.2'), inUse('10.1.0.2', '/run/netns/b')];
  expect(check({ ...unknown, inUse: both })).toEqual(['usedTwice 10.1.0.2']);
});

it('finds blocks that nobody uses, but for the one of each family that is ready, and those of an earlier Node', () => {
  const blocks = ['10.1.0.0/26', '10.1.0.64/26', '10.1.0.128/26', 'fd00::/122'].map((cidr) => block(cidr));
  const use: IpamFacts['use'] = ({ address }) => ({ used: address.bytes[3] === 64 ? 3 : 0, free: 9 });
  expect(check({ cluster: { node: NODE, blocks }, use })).toEqual(['emptyBlock 10.1.0.128/26']);
  expect(check({ cluster: { node: NODE, blocks }, use, blocksAreGiven: true })).toEqual([]);
  const stale = [block('10.1.0.0/26', { nodeUID: 'earlier' }), block('10.1.0.64/26', { node: 'other' })];
  expect(check({ cluster: { node: NODE, blocks: stale } })).toEqual(['staleBlock 10.1.0.0/26']);
});

it('finds addresses of blocks that are another node’s', () => {
  const cluster = { node: NODE, blocks: [block('10.1.0.0/26'), block('10.1.0.64/26', { node: 'other' })] };
  const facts = { cluster, reserved: [reserved('10.1.0.70')], attached: [entry('10.1.0.70')] };
  expect(check(facts)).toEqual(['foreignRange 10.1.0.70']);
});

it('reports pools, the ranges of this node, and all blocks', () => {
  const pools = parsePools([{ cidr: '10.1.0.0/24', blockSize: 26 }]);
  const blocks = [block('10.1.0.64/26'), block('10.1.0.0/25', { node: 'other', state: 'pending' })];
  const use = () => ({ used: 3, free: 58 });
  expect(ipamReport({ nodeName: 'me', pools, podCidrs: [], living: [], node: NODE, blocks, use })).toEqual({
    node: 'me',
    from: 'pool',
    pools: [{ cidr: '10.1.0.0/24', blockSize: 26, blocks: 4, free: 2, nodes: 2 }],
    ranges: [{ cidr: '10.1.0.64/26', state: 'confirmed', used: 3, free: 58 }],
    blocks: [
      { cidr: '10.1.0.64/26', node: 'me', state: 'confirmed' },
      { cidr: '10.1.0.0/25', node: 'other', state: 'pending' },
    ],
  });
  const own = ipamReport({
    nodeName: 'me',
    pools: undefined,
    podCidrs: [parseCidr('10.9.0.0/24'), parseCidr('fd00::/64')],
    living: [parseCidr('10.9.0.0/24'), parseCidr('10.8.0.0/24')],
    node: NODE,
    blocks: [],
    use: ({ prefixLength }) => ({ used: 3, free: prefixLength === 64 ? 2 ** 64 : 58 }),
  });
  const unknown = { nodeName: 'me', living: [], node: NODE, use: undefined };
  const podCidrs = [parseCidr('10.9.0.0/24')];
  expect(ipamReport({ ...unknown, pools, podCidrs: [], blocks }).ranges).toEqual([
    { cidr: '10.1.0.64/26', state: 'confirmed' },
  ]);
  expect(ipamReport({ ...unknown, pools: undefined, podCidrs, blocks: [] }).ranges).toEqual([
    { cidr: '10.9.0.0/24', state: 'podCIDR' },
  ]);
  expect(own).toMatchObject({ from: 'node', pools: [] });
  expect(own.ranges).toEqual([
    { cidr: '10.9.0.0/24', state: 'podCIDR', used: 3, free: 58 },
    { cidr: 'fd00::/64', state: 'podCIDR', used: 3, free: Number.MAX_SAFE_INTEGER },
    { cidr: '10.8.0.0/24', state: 'closed', used: 3, free: 0 },
  ]);
});
