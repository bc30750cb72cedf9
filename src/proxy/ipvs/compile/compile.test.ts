import { describe, expect, it } from 'vitest';
import { completePlan } from '../../../../test/samples/complete-plan.ts';
import { type SamplePort, samplePort } from '../../../../test/samples/sample-plan.ts';
import { atOnce, parseIp } from '../../../core/index.ts';
import { Layout } from '../diff/layout.ts';
import { compilePort } from './compile.ts';
import { isOwnMark, Marks } from './marks.ts';
import { parseScheduler } from './server.ts';
import { elementKey, kernelSetName, SET_NAMES } from './sets.ts';

const MARK = 0x6e70_0001;
const context = {
  nodePortAddresses: [parseIp('192.168.0.7'), parseIp('192.168.1.7')],
  nodeIp: parseIp('192.168.0.7'),
  scheduler: 'rr',
  mark: () => MARK,
};

/** What a port becomes: `virtual server -> endpoints` or `refused`, and all members of sets. */
function compiled(sample: Omit<SamplePort, 'name' | 'clusterIp'>) {
  const { claims, shared } = atOnce(
    compilePort(samplePort({ name: 'a/b', clusterIp: '10.96.0.1', ...sample }), context),
  );
  const servers = [...claims].map(([key, { server }]) => [
    key,
    server ? [...server.endpoints.keys()].join(' ') : 'refused',
  ]);
  const members = [...[...claims.values()].flatMap(({ elements }) => elements), ...shared].map(elementKey);
  return { servers: Object.fromEntries(servers), members: [...new Set(members)].sort() };
}

const [HERE, FAR] = ['10.244.1.5:8080', '10.244.2.5:8080'];

describe('a Service port becomes', () => {
  it.each<{ title: string; sample: Omit<SamplePort, 'name' | 'clusterIp'>; servers: object; members: string[] }>([
    {
      title: 'one virtual server for its ClusterIP',
      sample: { local: [HERE], remote: [FAR] },
      servers: { '10.96.0.1:80/TCP': `${HERE} ${FAR}` },
      members: ['KUBE-CLUSTER-IP 10.96.0.1,tcp:80'],
    },
    {
      title: 'a refusal without endpoints, for every destination',
      sample: { nodePort: 30080, externalIps: ['203.0.113.1'] },
      servers: {
        '10.96.0.1:80/TCP': 'refused',
        '203.0.113.1:80/TCP': 'refused',
        '192.168.0.7:30080/TCP': 'refused',
        '192.168.1.7:30080/TCP': 'refused',
      },
      members: [
        'KUBE-REJECT 10.96.0.1,tcp:80',
        'KUBE-REJECT 192.168.0.7,tcp:30080',
        'KUBE-REJECT 192.168.1.7,tcp:30080',
        'KUBE-REJECT 203.0.113.1,tcp:80',
      ],
    },
    {
      title: 'silence under internal policy Local without an endpoint here',
      sample: { internalPolicy: 'Local', remote: [FAR] },
      servers: { '10.96.0.1:80/TCP': 'refused' },
      members: ['KUBE-DROP 10.96.0.1,tcp:80'],
    },
    {
      title: 'two virtual servers under external policy Local: by address for node and pods, by mark for the rest',
      sample: { externalPolicy: 'Local', loadBalancerVips: ['203.0.113.1'], local: [HERE], remote: [FAR] },
      servers: {
        '10.96.0.1:80/TCP': `${HERE} ${FAR}`,
        '203.0.113.1:80/TCP': `${HERE} ${FAR}`,
        'mark 0x6e700001': HERE,
      },
      members: [
        'KUBE-CLUSTER-IP 10.96.0.1,tcp:80',
        'KUBE-IPVS-MARK 203.0.113.1,tcp:80',
        'KUBE-LOAD-BALANCER 203.0.113.1,tcp:80',
        'KUBE-LOAD-BALANCER-LOCAL 203.0.113.1,tcp:80',
      ],
    },
    {
      title: 'no mark but a drop for those outside when there is no endpoint here',
      sample: { externalPolicy: 'Local', externalIps: ['203.0.113.1'], remote: [FAR] },
      servers: { '10.96.0.1:80/TCP': FAR, '203.0.113.1:80/TCP': FAR },
      members: [
        'KUBE-CLUSTER-IP 10.96.0.1,tcp:80',
        'KUBE-DROP-OUTSIDE 203.0.113.1,tcp:80',
        'KUBE-EXTERNAL-IP-LOCAL 203.0.113.1,tcp:80',
      ],
    },
    {
      title: 'source ranges of its VIPs, and the VIP itself where the node may use it',
      sample: { loadBalancerVips: ['203.0.113.1'], sourceRanges: ['192.168.0.0/16', '198.18.0.1/32'], remote: [FAR] },
      servers: { '10.96.0.1:80/TCP': FAR, '203.0.113.1:80/TCP': FAR },
      members: [
        'KUBE-CLUSTER-IP 10.96.0.1,tcp:80',
        'KUBE-LOAD-BALANCER 203.0.113.1,tcp:80',
        'KUBE-LOAD-BALANCER-FW 203.0.113.1,tcp:80',
        'KUBE-LOAD-BALANCER-SOURCE-CIDR 203.0.113.1,tcp:80,192.168.0.0/16',
        'KUBE-LOAD-BALANCER-SOURCE-CIDR 203.0.113.1,tcp:80,198.18.0.1',
        'KUBE-LOAD-BALANCER-SOURCE-IP 203.0.113.1,tcp:80,203.0.113.1',
      ],
    },
    {
      title: 'NodePorts of SCTP by address, of the others by number',
      sample: { protocol: 'SCTP', nodePort: 30080, remote: [FAR] },
      servers: { '10.96.0.1:80/SCTP': FAR, '192.168.0.7:30080/SCTP': FAR, '192.168.1.7:30080/SCTP': FAR },
      members: [
        'KUBE-CLUSTER-IP 10.96.0.1,sctp:80',
        'KUBE-NODE-PORT-SCTP-HASH 192.168.0.7,sctp:30080',
        'KUBE-NODE-PORT-SCTP-HASH 192.168.1.7,sctp:30080',
      ],
    },
    {
      title: 'a port for the health checks of its load balancer',
      sample: { externalPolicy: 'Local', healthCheckNodePort: 31000, local: [HERE] },
      servers: { '10.96.0.1:80/TCP': HERE },
      members: ['KUBE-CLUSTER-IP 10.96.0.1,tcp:80', 'KUBE-HEALTH-CHECK-NODE-PORT 31000'],
    },
  ])('$title', ({ sample, servers, members }) => {
    expect(compiled(sample)).toEqual({ servers, members });
  });

  it('virtual servers with its persistence and the scheduler it asks for', () => {
    const port = samplePort({
      name: 'a/b',
      clusterIp: '10.96.0.1',
      remote: [FAR],
      affinitySeconds: 600,
      hint: 'mh,mh-fallback',
    });
    const [claim] = atOnce(compilePort(port, context)).claims.values();
    expect(claim!.server!.virtual).toMatchObject({ scheduler: 'mh', flags: 0x18, persistenceSeconds: 600 });
  });
});

describe('schedulers', () => {
  it.each([
    ['rr', 'rr', 0],
    ['mh', 'mh', 0x10],
    ['mh,mh-port', 'mh', 0x10],
    ['mh, mh-fallback', 'mh', 0x18],
    ['mh,mh-no-port', 'mh', 0],
    ['sh,mh-fallback', 'sh', 0],
  ])('%s is %s with flags %i', (text, scheduler, flags) => {
    expect(parseScheduler(text)).toEqual({ scheduler, flags });
  });
});

it('has a server by mark choose by the address of the client in place of persistence, of which the kernel would keep the port', () => {
  const sample = {
    externalPolicy: 'Local',
    loadBalancerVips: ['203.0.113.1'],
    local: [HERE],
    affinitySeconds: 600,
  } as const;
  const { claims } = atOnce(compilePort(samplePort({ name: 'a/b', clusterIp: '10.96.0.1', ...sample }), context));
  const settings = (key: string) => claims.get(key)!.server!.virtual;
  expect(settings('mark 0x6e700001')).toMatchObject({ scheduler: 'sh', flags: 8, persistenceSeconds: 0 });
  expect(settings('203.0.113.1:80/TCP')).toMatchObject({ scheduler: 'rr', flags: 0, persistenceSeconds: 600 });
});

describe('marks', () => {
  it('are the same at every start, never the masquerading bit, and never given out twice', () => {
    for (const bit of [0, 4, 14, 17, 24, 28, 30, 31]) {
      const reserved = 2 ** bit;
      const marks = new Marks(reserved);
      const given = Array.from({ length: 500 }, (_, n) => marks.take(`ns/service-${n}:http/TCP`));
      expect(new Set(given).size).toBe(500);
      for (const mark of given) {
        expect(isOwnMark(mark)).toBe(true);
        expect((mark & reserved) >>> 0).toBe(0);
        // What the kubelet, kube-proxy, CNI plugins, Cilium and AWS test.
        expect(mark & 0xef80 & ~reserved).toBe(0);
      }
      expect(new Marks(reserved).take('ns/service-0:http/TCP')).toBe(given[0]);
    }
  });

  it('run out with a sentence that names the Service, and can be given back', () => {
    const marks = new Marks(0x4000);
    for (let n = 0; n < 2048; n++) marks.take(`s${n}`);
    expect(() => marks.take('ns/late')).toThrow(/"ns\/late".*2048/);
    marks.release('s7');
    expect(isOwnMark(marks.take('ns/late'))).toBe(true);
  });

  it('of others are not ours', () => {
    for (const mark of [0, 1, 77, 0x4000, 0x8000, 0x6e70_4000, 0x6e70_ffff, 0x6e71_0080]) {
      expect(isOwnMark(mark)).toBe(false);
    }
  });
});

describe('a layout', () => {
  const make = () => new Layout({ nodePortAddresses: [], nodeIp: undefined, scheduler: 'rr', masqueradeMark: 0x4000 });

  it('is empty again when every port is removed, whatever was shared', () => {
    const layout = make();
    const ports = [...completePlan('IPv4').ports.values()];
    for (const port of ports) atOnce(layout.upsert(port));
    expect(layout.servers.size).toBeGreaterThan(30);
    for (const port of ports) layout.remove(port.key);
    expect([layout.servers.size, layout.elements.size, layout.addresses.size, layout.ports.size]).toEqual([0, 0, 0, 0]);
  });

  it('gives an address and port that two Services want to the first by name, whoever came first', () => {
    const layout = make();
    const claim = (name: string, remote: string) => samplePort({ name, clusterIp: '10.96.0.1', remote: [remote] });
    atOnce(layout.upsert(claim('b/late', FAR)));
    atOnce(layout.upsert(claim('a/early', HERE)));
    expect(layout.servers.get('10.96.0.1:80/TCP')!.owner).toBe('a/early/TCP');
    layout.remove('a/early/TCP');
    expect(layout.servers.get('10.96.0.1:80/TCP')!.owner).toBe('b/late/TCP');
    expect([...layout.elements.keys()]).toEqual(['KUBE-CLUSTER-IP 10.96.0.1,tcp:80']);
  });
});

it('names the sets of IPv6 as kube-proxy does, all different', () => {
  expect(kernelSetName('IPv6', 'KUBE-LOAD-BALANCER-SOURCE-CIDR')).toBe('KUBE-6-LOAD-BALANCER-SOURCE-CID');
  expect(new Set(SET_NAMES.map((name) => kernelSetName('IPv6', name))).size).toBe(SET_NAMES.length);
});
