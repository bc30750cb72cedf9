import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { atOnce, formatIp, formatIpPort, parseIp } from '../../core/index.ts';
import type { Endpoint, PlanDelta, ServicePortPlan } from '../plan/index.ts';
import {
  addTouched,
  nodePortAddressTest,
  staleFlows,
  type TouchedPorts,
  type TrackedFlow,
  touchedBy,
  whereaboutsOf,
} from './conntrack.ts';

const NODE = parseIp('192.0.2.1');
const VIP = '10.96.0.10:53';

function endpoint(text: string): Endpoint {
  const [ip, port] = text.split(':');
  const state = { isLocal: false, ready: true, serving: true, terminating: false, zoneHints: [], nodeHints: [] };
  return { ip: parseIp(ip!), port: Number(port), key: text, ...state };
}

interface Sample extends Partial<Omit<ServicePortPlan, 'clusterEndpoints' | 'localEndpoints' | 'servingEndpoints'>> {
  readonly cluster?: readonly string[];
  readonly local?: readonly string[];
  readonly serving?: readonly string[];
}

function port({ cluster = [], local = [], serving, ...overrides }: Sample = {}): ServicePortPlan {
  return {
    key: 'kube-system/dns:dns/UDP',
    serviceName: 'kube-system/dns',
    name: 'kube-system/dns:dns',
    protocol: 'UDP',
    clusterIp: parseIp('10.96.0.10'),
    port: 53,
    nodePort: 30053,
    externalIps: [parseIp('203.0.113.1')],
    loadBalancerVips: [parseIp('198.51.100.1')],
    sourceRanges: [],
    affinitySeconds: 0,
    healthCheckNodePort: 0,
    internalPolicy: 'Cluster',
    externalPolicy: 'Cluster',
    clusterEndpoints: cluster.map(endpoint),
    localEndpoints: local.map(endpoint),
    ...(serving && { servingEndpoints: serving.map(endpoint) }),
    hasAnyEndpoints: true,
    internalVerdict: 'forward',
    externalVerdict: 'forward',
    ...overrides,
  };
}

/** A flow to `to`, answered by `by`. */
function flow(to: string, by: string, protocol = 17): TrackedFlow {
  const [destination, destinationPort] = to.split(':');
  const [source, sourcePort] = by.split(':');
  return {
    protocol,
    original: { destination: parseIp(destination!), destinationPort: Number(destinationPort) },
    reply: { source: parseIp(source!), sourcePort: Number(sourcePort) },
  };
}

const onNode = nodePortAddressTest({ nodePortAddresses: 'all', localAddresses: [NODE, parseIp('127.0.0.1')] });

function staleAfter(...deltas: Partial<PlanDelta>[]) {
  const touched: TouchedPorts = new Map();
  for (const delta of deltas) addTouched(touched, { upserted: [], removed: [], ...delta });
  const { destinations, isStale } = atOnce(staleFlows(touched, onNode));
  return {
    destinations,
    isStale(to: string, by: string, protocol?: number) {
      const tracked = flow(to, by, protocol);
      const told = isStale(tracked);
      // Those that the flow may have gone to are enough to tell.
      expect(atOnce(staleFlows(touchedBy(touched, [tracked]), onNode)).isStale(tracked)).toBe(told);
      const { ports, mayBeTo } = atOnce(whereaboutsOf(touched));
      if (told) expect(ports.has(tracked.original.destinationPort) && mayBeTo(tracked)).toBe(true);
      return told;
    },
  };
}

describe('a Service with endpoints', () => {
  const { isStale, destinations } = staleAfter({ upserted: [port({ cluster: ['10.0.0.1:53'] })] });
  const addresses = [VIP, '203.0.113.1:53', '198.51.100.1:53', '192.0.2.1:30053'];

  it.each(addresses)('keeps the flows to %s that an endpoint answers', (to) => {
    expect(isStale(to, '10.0.0.1:53')).toBe(false);
  });

  it.each(addresses)(
    'gives up those to %s of an endpoint that is gone, of another port, and untranslated ones',
    (to) => {
      expect(isStale(to, '10.0.0.2:53')).toBe(true);
      expect(isStale(to, '10.0.0.1:5353')).toBe(true);
      expect(isStale(to, to)).toBe(true);
    },
  );

  it('is not concerned with other ports, other addresses and other protocols', () => {
    expect(isStale('10.96.0.10:54', '10.0.0.2:53')).toBe(false);
    expect(isStale('10.96.0.11:53', '10.0.0.2:53')).toBe(false);
    expect(isStale('192.0.2.1:53', '10.0.0.2:53')).toBe(false);
    expect(isStale('10.96.0.10:30053', '10.0.0.2:53')).toBe(false);
    expect(isStale(VIP, '10.0.0.2:53', 6)).toBe(false);
    expect(isStale(VIP, '10.0.0.2:53', 132)).toBe(false);
  });

  it('is not concerned with its NodePort number on other hosts and on loopback', () => {
    expect(isStale('192.0.2.99:30053', '192.0.2.99:30053')).toBe(false);
    expect(isStale('127.0.0.1:30053', '127.0.0.1:30053')).toBe(false);
  });

  it('says where to look', () => {
    expect(destinations.map(({ protocol, ip, port }) => `${protocol} ${ip ? formatIp(ip) : '*'} ${port}`)).toEqual([
      '17 10.96.0.10 53',
      '17 203.0.113.1 53',
      '17 198.51.100.1 53',
      '17 * 30053',
    ]);
  });
});

describe('which endpoints count', () => {
  it('all that serve, where they are known', () => {
    const { isStale } = staleAfter({
      upserted: [port({ cluster: ['10.0.0.1:53'], serving: ['10.0.0.1:53', '10.0.0.2:53'] })],
    });
    expect([isStale(VIP, '10.0.0.2:53'), isStale(VIP, '10.0.0.3:53')]).toEqual([false, true]);
  });

  it('else those of both policies', () => {
    const { isStale } = staleAfter({ upserted: [port({ cluster: ['10.0.0.1:53'], local: ['10.0.0.2:53'] })] });
    expect(['10.0.0.1:53', '10.0.0.2:53', '10.0.0.3:53'].map((by) => isStale(VIP, by))).toEqual([false, false, true]);
  });
});

it('gives up all flows of a Service without endpoints', () => {
  const { isStale } = staleAfter({ upserted: [port()] });
  expect([isStale(VIP, '10.0.0.1:53'), isStale(VIP, VIP)]).toEqual([true, true]);
});

describe('a Service that is gone', () => {
  it('gives up the flows its endpoints answer, and no others', () => {
    const { isStale } = staleAfter({ removed: [port({ cluster: ['10.0.0.1:53'] })] });
    expect([isStale(VIP, '10.0.0.1:53'), isStale('192.0.2.1:30053', '10.0.0.1:53')]).toEqual([true, true]);
    // The address may be a real host's by now.
    expect([isStale('203.0.113.1:53', '203.0.113.1:53'), isStale(VIP, '10.0.0.9:53')]).toEqual([false, false]);
  });

  it('leaves its address to a Service that takes it over', () => {
    const { isStale } = staleAfter({
      removed: [port({ cluster: ['10.0.0.1:53'] })],
      upserted: [port({ key: 'kube-system/new:dns/UDP', cluster: ['10.0.0.2:53'] })],
    });
    expect(['10.0.0.1:53', '10.0.0.2:53', VIP].map((by) => isStale(VIP, by))).toEqual([true, false, true]);
  });
});

it('gives up the flows to an address that a Service has no longer', () => {
  const { isStale } = staleAfter({
    upserted: [port({ cluster: ['10.0.0.1:53'], externalIps: [] })],
    replaced: [port({ cluster: ['10.0.0.1:53'] })],
  });
  expect([isStale('203.0.113.1:53', '10.0.0.1:53'), isStale(VIP, '10.0.0.1:53')]).toEqual([true, false]);
});

describe('addTouched', () => {
  const served = (...cluster: string[]) => port({ cluster });
  const one = served('10.0.0.1:53');

  it.each([
    ['more endpoints', served('10.0.0.2:53', '10.0.0.1:53'), 0],
    ['an endpoint less', served(), 1],
    ['another endpoint', served('10.0.0.2:53', '10.0.0.3:53'), 1],
    ['another port', port({ cluster: ['10.0.0.1:53'], port: 5353 }), 1],
    ['no NodePort', port({ cluster: ['10.0.0.1:53'], nodePort: 0 }), 1],
    ['an external IP less', port({ cluster: ['10.0.0.1:53'], externalIps: [] }), 1],
    ['another external IP', port({ cluster: ['10.0.0.1:53'], externalIps: [NODE] }), 1],
  ])('looks at what may have made flows stale: %s', (_, now, touches) => {
    const touched: TouchedPorts = new Map();
    addTouched(touched, { upserted: [now], removed: [], replaced: [one] });
    expect(touched.size).toBe(touches);
  });

  it('looks at the first endpoint, and at more of what is to be looked at already', () => {
    const touched: TouchedPorts = new Map();
    addTouched(touched, { upserted: [one], removed: [], replaced: [served()] });
    const more = served('10.0.0.1:53', '10.0.0.2:53');
    addTouched(touched, { upserted: [more], removed: [], replaced: [one] });
    expect([...touched.values()].map(({ current }) => current)).toEqual([more]);
  });

  it('takes UDP and SCTP alone', () => {
    const touched: TouchedPorts = new Map();
    addTouched(touched, { upserted: [port({ protocol: 'TCP' })], removed: [port({ protocol: 'TCP', key: 'x' })] });
    expect(touched.size).toBe(0);
    addTouched(touched, { upserted: [port({ protocol: 'SCTP', cluster: ['10.0.0.1:53'] })], removed: [] });
    const { isStale } = atOnce(staleFlows(touched, onNode));
    expect([132, 17].map((protocol) => isStale(flow(VIP, '10.0.0.2:53', protocol)))).toEqual([true, false]);
  });

  it('adds up the deltas of syncs that failed: the last state counts, the first one is remembered', () => {
    const { isStale } = staleAfter(
      { removed: [port({ cluster: ['10.0.0.1:53'] })] },
      { upserted: [port({ cluster: ['10.0.0.2:53'] })] },
      { removed: [port({ cluster: ['10.0.0.2:53'] })] },
    );
    expect(['10.0.0.1:53', '10.0.0.2:53', '10.0.0.3:53'].map((by) => isStale(VIP, by))).toEqual([true, true, false]);
  });

  it('forgets a removal when the port is back', () => {
    const { isStale } = staleAfter(
      { removed: [port({ cluster: ['10.0.0.1:53'] })] },
      { upserted: [port({ cluster: ['10.0.0.1:53'] })] },
    );
    expect([isStale(VIP, '10.0.0.1:53'), isStale(VIP, VIP)]).toEqual([false, true]);
  });

  it('does not grow while one port changes again and again', () => {
    const touched: TouchedPorts = new Map();
    for (let n = 0; n < 50; n++) addTouched(touched, { upserted: [port()], removed: [], replaced: [port()] });
    expect([...touched.values()].map(({ earlier }) => earlier.length)).toEqual([2]);
  });
});

describe('nodePortAddressTest', () => {
  const localAddresses = [NODE, parseIp('192.0.2.2'), parseIp('127.0.0.1'), parseIp('::1')];
  it.each([
    ['every local address except loopback', { nodePortAddresses: 'all' as const }, ['192.0.2.1', '192.0.2.2']],
    ['the chosen ones', { nodePortAddresses: [NODE] }, ['192.0.2.1']],
    [
      'loopback when asked',
      { nodePortAddresses: [NODE], localhost: true },
      ['192.0.2.1', '127.0.0.1', '127.0.0.9', '::1'],
    ],
  ])('%s', (_, input, accepted) => {
    const test = nodePortAddressTest({ ...input, localAddresses });
    const candidates = ['192.0.2.1', '192.0.2.2', '192.0.2.3', '127.0.0.1', '127.0.0.9', '::1'];
    expect(candidates.filter((ip) => test(parseIp(ip)))).toEqual(accepted);
  });
});

it('never gives up a flow to an address that no touched Service has or had', () => {
  const ip = fc.nat(3).map((n) => `10.96.0.${n}`);
  const sample = fc.record({ ip, port: fc.constantFrom(53, 54), endpoint: fc.nat(3), gone: fc.boolean() });
  fc.assert(
    fc.property(fc.array(sample, { maxLength: 6 }), ip, fc.constantFrom(53, 54), fc.nat(3), (samples, to, at, by) => {
      const plans = samples.map(({ ip, port: number, endpoint }, n) => ({
        gone: samples[n]!.gone,
        plan: port({
          key: `s${n}`,
          clusterIp: parseIp(ip),
          port: number,
          nodePort: 0,
          externalIps: [],
          loadBalancerVips: [],
          cluster: [`10.0.0.${endpoint}:53`],
        }),
      }));
      const { isStale } = staleAfter({
        upserted: plans.filter(({ gone }) => !gone).map(({ plan }) => plan),
        removed: plans.filter(({ gone }) => gone).map(({ plan }) => plan),
      });
      const key = formatIpPort(parseIp(to), at);
      const owners = plans.filter(({ plan }) => formatIpPort(plan.clusterIp, plan.port) === key);
      const current = owners.filter(({ gone }) => !gone);
      const answering = `10.0.0.${by}:53`;
      const has = ({ plan }: (typeof plans)[number]) => plan.clusterEndpoints[0]!.key === answering;
      expect(isStale(key, answering)).toBe(current.length > 0 ? !current.some(has) : owners.some(has));
    }),
  );
});

it('takes a flow to port 0 for none of a Service without a NodePort', () => {
  const touched: TouchedPorts = new Map();
  addTouched(touched, { upserted: [port({ nodePort: 0, cluster: ['10.0.0.1:53'] })], removed: [] });
  const toNothing = flow('192.0.2.1:0', '192.0.2.1:0');
  expect(touchedBy(touched, [toNothing]).size).toBe(0);
  expect(atOnce(whereaboutsOf(touched)).mayBeTo(toNothing)).toBe(false);
});

// What goes over all endpoints for each address needs gigabytes and minutes.
it('compares the flows of a Service with 10,000 external IPs and 5,000 endpoints', { timeout: 30_000 }, () => {
  const ip = (net: number, n: number) => `${net}.0.${n >> 8}.${n & 255}`;
  const externalIps = Array.from({ length: 10_000 }, (_, n) => parseIp(ip(100, n)));
  const serving = Array.from({ length: 5000 }, (_, n) => `${ip(10, n)}:53`);
  const touched: TouchedPorts = new Map();
  addTouched(touched, { upserted: [port({ externalIps, serving })], removed: [] });
  const { destinations, isStale } = atOnce(staleFlows(touched, onNode));
  expect(destinations).toHaveLength(10_003);
  expect(isStale(flow(`${ip(100, 9999)}:53`, `${ip(10, 4999)}:53`))).toBe(false);
  expect(isStale(flow(`${ip(100, 9999)}:53`, `${ip(10, 5000)}:53`))).toBe(true);
});
