import { expect, it } from 'vitest';
import { type Cidr, parseCidr } from '../../../core/index.ts';
import { completeConfig, NO_RANGES, type NodeNetwork } from './node-config.ts';

const [four, six] = ['10.244.3.0/24', 'fd00:3::/64'].map(parseCidr) as [Cidr, Cidr];
const node: NodeNetwork = { ranges: { sets: [[four], [six]], lacking: '', held: [four, six] }, dataDir: '/data' };
const unknown: NodeNetwork = { ...node, ranges: NO_RANGES };
const complete = (config: object, of = node) => {
  const { config: text, ...rest } = completeConfig(JSON.stringify(config), of);
  return { ...rest, config: JSON.parse(text) };
};

it('adds a range set for each set of the node’s ranges, and the directory', () => {
  expect(complete({ name: 'n', mtu: 9, ipam: { type: 'nodeplane', routes: [] } })).toEqual({
    network: 'n',
    lacksRanges: false,
    config: {
      name: 'n',
      mtu: 9,
      ipam: {
        type: 'nodeplane',
        routes: [],
        dataDir: '/data',
        ranges: [[{ subnet: '10.244.3.0/24' }], [{ subnet: 'fd00:3::/64' }]],
      },
    },
  });
});

it('leaves what the configuration says', () => {
  const own = { name: 'n', ipam: { type: 'nodeplane', ranges: [[{ subnet: '10.1.0.0/16' }]], dataDir: '/own' } };
  expect(complete(own, unknown)).toEqual({ network: 'n', lacksRanges: false, config: own });
  const old = { name: 'n', ipam: { type: 'nodeplane', subnet: '10.1.0.0/16', dataDir: '/own' } };
  expect(complete(old, unknown).config).toEqual(old);
});

it('adds only the directory where the addresses are not the agent’s to give', () => {
  for (const ipam of [{ type: 'host-local' }, { type: 'dhcp' }, {}, undefined]) {
    expect(complete({ name: 'n', ipam }).config).toEqual({ name: 'n', ipam, dataDir: '/data' });
  }
  const own = { name: 'n', dataDir: '/own' };
  expect(complete(own)).toEqual({ network: 'n', lacksRanges: false, config: own });
});

it('says when the ranges are not known', () => {
  expect(complete({ name: 'n', ipam: { type: 'nodeplane' } }, unknown).lacksRanges).toBe(true);
});

it('puts blocks of one family in one set: a pod gets one address of them', () => {
  const more = parseCidr('10.244.9.0/26');
  const ranges = { sets: [[four, more], [six]], lacking: '', held: [four, more, six] };
  expect(complete({ name: 'n', ipam: { type: 'nodeplane' } }, { ...node, ranges }).config.ipam.ranges).toEqual([
    [{ subnet: '10.244.3.0/24' }, { subnet: '10.244.9.0/26' }],
    [{ subnet: 'fd00:3::/64' }],
  ]);
});

it('names ranges that only pods of before have, for their gateways, and excludes them', () => {
  const [former, former6] = ['10.244.1.0/24', 'fd00:1::/64'].map(parseCidr) as [Cidr, Cidr];
  const of = (sets: Cidr[][], ipam: object = {}) => {
    const ranges = { sets, lacking: '', held: [...sets.flat(), former, former6] };
    return complete({ name: 'n', ipam: { type: 'nodeplane', ...ipam } }, { ...node, ranges }).config.ipam;
  };
  const exclude = ['10.244.1.0/24', 'fd00:1::/64'];
  expect(of([[four], [six]])).toMatchObject({
    ranges: [
      [{ subnet: '10.244.3.0/24' }, { subnet: '10.244.1.0/24' }],
      [{ subnet: 'fd00:3::/64' }, { subnet: 'fd00:1::/64' }],
    ],
    exclude,
  });
  // A set of its own would ask for an address of it.
  expect(of([[four]], { exclude: ['10.244.3.9'] })).toMatchObject({
    ranges: [[{ subnet: '10.244.3.0/24' }, { subnet: '10.244.1.0/24' }]],
    exclude: ['10.244.3.9', ...exclude],
  });
});

it.each([
  ['10.244.1.128/25', '10.244.1.1'],
  ['10.244.1.0/26', '10.244.1.64'],
])(
  'names one address of a former range that has the range of new pods within it, %s, and excludes it',
  (text, besides) => {
    const [former, within] = ['10.244.1.0/24', text].map(parseCidr) as [Cidr, Cidr];
    const ranges = { sets: [[within]], lacking: '', held: [within, former] };
    const { ipam } = complete({ name: 'n', ipam: { type: 'nodeplane' } }, { ...node, ranges }).config;
    expect(ipam).toMatchObject({
      ranges: [[{ subnet: text }, { subnet: '10.244.1.0/24', rangeStart: besides, rangeEnd: besides }]],
      exclude: [besides],
    });
  },
);

it('names what pods have addresses of where no new pod can get one: others of their requests are served', () => {
  const ranges = { sets: [], lacking: 'full', held: [four] };
  expect(complete({ name: 'n', ipam: { type: 'nodeplane' } }, { ...node, ranges })).toMatchObject({
    lacksRanges: true,
    config: { ipam: { ranges: [[{ subnet: '10.244.3.0/24' }]] } },
  });
});

it.each(['', '{', '[]', 'null', '7', '{"name":7}', '{"ipam":[]}', '{"ipam":null}'])('passes on %j', (text) => {
  expect(completeConfig(text, unknown)).toEqual({ network: '', config: text, lacksRanges: false });
});

it('gives pods of its own network the MTU of the way to other nodes, unless the configuration says one, be it 0', () => {
  const mtuOf = (config: object, mtu: number | undefined = 1430) => {
    const text = JSON.stringify({ ipam: { type: 'nodeplane' }, ...config });
    return JSON.parse(completeConfig(text, { ...node, mtu: { network: 'n', mtu } }).config).mtu;
  };
  expect(mtuOf({ name: 'n' })).toBe(1430);
  expect(mtuOf({ name: 'n', ipam: { type: 'dhcp' } })).toBe(1430);
  expect([mtuOf({ name: 'n', mtu: 9000 }), mtuOf({ name: 'n', mtu: 0 })]).toEqual([9000, 0]);
  expect(mtuOf({ name: 'other' })).toBeUndefined();
  expect(JSON.parse(completeConfig('{"name":"n"}', { ...node, mtu: { network: 'n', mtu: undefined } }).config)).toEqual(
    {
      name: 'n',
      dataDir: '/data',
    },
  );
});
