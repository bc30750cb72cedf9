import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { makeSlice } from '../../../test/fakes/service-objects.ts';
import { atOnce, type IpFamily } from '../../core/index.ts';
import type { Protocol } from '../../kube/index.ts';
import { type EndpointsWanted, endpointsOf } from './endpoint.ts';

const NAME = 'shop/web';

/** Ports of a Service by these names and protocols. */
function wanting(groups: readonly string[] = ['/TCP'], family: IpFamily = 'IPv4'): EndpointsWanted {
  const ports = groups.map((group) => {
    const [portName = '', protocol] = group.split('/');
    return { portName, protocol: protocol as Protocol };
  });
  return { family, nodeName: 'n1', ports };
}

function keysOf(slices: Parameters<typeof endpointsOf>[0], group = '/TCP'): string[] | undefined {
  return atOnce(endpointsOf(slices, wanting([group])))
    .groups.get(group)
    ?.map((endpoint) => endpoint.key);
}

it('sorts by the characters of ip:port, not by number', () => {
  expect(keysOf([makeSlice(NAME, ['10.0.0.9', '10.0.0.10', '10.0.0.1'])])).toEqual([
    '10.0.0.10:8080',
    '10.0.0.1:8080',
    '10.0.0.9:8080',
  ]);
});

it('writes addresses in their canonical form, IPv6 in brackets', () => {
  const slice = makeSlice(NAME, ['FD00:0:0::5'], { addressType: 'IPv6' });
  expect(atOnce(endpointsOf([slice], wanting(['/TCP'], 'IPv6'))).groups.get('/TCP')?.[0]?.key).toBe('[fd00::5]:8080');
});

it('groups by port name and protocol; the number may differ from slice to slice', () => {
  const slices = [
    makeSlice(NAME, ['10.0.0.1'], {
      suffix: 'a',
      ports: [
        { name: 'http', port: 8080 },
        { name: 'dns', protocol: 'UDP', port: 53 },
      ],
    }),
    makeSlice(NAME, ['10.0.0.2'], { suffix: 'b', ports: [{ name: 'http', protocol: 'TCP', port: 9090 }] }),
  ];
  expect(keysOf(slices, 'http/TCP')).toEqual(['10.0.0.1:8080', '10.0.0.2:9090']);
  expect(keysOf(slices, 'dns/UDP')).toEqual(['10.0.0.1:53']);
  expect(keysOf(slices, 'dns/TCP')).toBeUndefined();
});

it('uses the first address only, and passes over what has no address or no port', () => {
  const endpoints = [{ addresses: ['10.0.0.1', '10.0.0.2'] }, { addresses: [] }, {}];
  expect(
    keysOf([makeSlice(NAME, endpoints, { ports: [{ port: 8080 }, { name: 'x' }, { name: 'y', port: 0 }] })]),
  ).toEqual(['10.0.0.1:8080']);
  expect(
    atOnce(endpointsOf([makeSlice(NAME, endpoints, { ports: [{ name: 'x' }] })], wanting(['x/TCP']))).groups.size,
  ).toBe(0);
});

it('passes over slices of other address types and reports unreadable addresses', () => {
  const slices = [
    makeSlice(NAME, ['fd00::1'], { addressType: 'IPv6' }),
    makeSlice(NAME, ['web.example'], { addressType: 'FQDN' }),
    makeSlice(NAME, ['10.0.0.256', 'fd00::1', '10.0.0.1']),
  ];
  expect(keysOf(slices)).toEqual(['10.0.0.1:8080']);
  expect(atOnce(endpointsOf(slices, wanting())).problems).toEqual([
    'EndpointSlice "web-a" has "10.0.0.256", which is not an IPv4 address',
    'EndpointSlice "web-a" has "fd00::1", which is not an IPv4 address',
  ]);
});

it('reads conditions, hints and the node', () => {
  const [plain, full] = atOnce(
    endpointsOf(
      [
        makeSlice(NAME, [
          '10.0.0.1',
          {
            addresses: ['10.0.0.2'],
            nodeName: 'n1',
            conditions: { ready: false, serving: false, terminating: true },
            hints: { forZones: [{ name: 'a' }, { name: 'b' }], forNodes: [{ name: 'n1' }] },
          },
        ]),
      ],
      wanting(),
    ),
  ).groups.get('/TCP')!;
  expect(plain).toMatchObject({
    isLocal: false,
    ready: true,
    serving: true,
    terminating: false,
    zoneHints: [],
    nodeHints: [],
  });
  expect(full).toMatchObject({
    isLocal: true,
    ready: false,
    serving: false,
    terminating: true,
    zoneHints: ['a', 'b'],
    nodeHints: ['n1'],
  });
});

describe('an address listed twice', () => {
  const at = (ready: boolean, terminating: boolean, nodeName = 'n1') => ({
    addresses: ['10.0.0.1'],
    nodeName,
    conditions: { ready, serving: true, terminating },
  });
  const winner = (...endpoints: ReturnType<typeof at>[]) =>
    atOnce(
      endpointsOf(
        endpoints.map((endpoint, index) => makeSlice(NAME, [endpoint], { suffix: `s${index}` })),
        wanting(),
      ),
    ).groups.get('/TCP');

  it('counts once, and what stays wins over what terminates, in either order', () => {
    for (const pair of [
      [at(true, false), at(false, true)],
      [at(false, true), at(true, false)],
    ] as const) {
      expect(winner(...pair)).toEqual([expect.objectContaining({ ready: true, terminating: false })]);
    }
    expect(winner(at(false, false), at(true, true))).toEqual([expect.objectContaining({ terminating: false })]);
  });

  it('is settled for good when all stay: ready first, then the first slice', () => {
    expect(winner(at(false, false), at(true, false))).toEqual([expect.objectContaining({ ready: true })]);
    expect(winner(at(true, false, 'n1'), at(true, false, 'n2'))).toEqual([expect.objectContaining({ isLocal: true })]);
  });

  it('gives the same result whatever the order of the slices', () => {
    const condition = fc.record({ ready: fc.boolean(), terminating: fc.boolean(), node: fc.constantFrom('n1', 'n2') });
    fc.assert(
      fc.property(fc.array(condition, { minLength: 2, maxLength: 5 }), fc.nat(), (conditions, turn) => {
        const slices = conditions.map(({ ready, terminating, node }, index) =>
          makeSlice(NAME, [at(ready, terminating, node)], { suffix: `s${index}` }),
        );
        const by = turn % slices.length;
        const turned = [...slices.slice(by), ...slices.slice(0, by)].reverse();
        expect(atOnce(endpointsOf(turned, wanting()))).toEqual(atOnce(endpointsOf(slices, wanting())));
      }),
    );
  });
});
