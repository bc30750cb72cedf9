import { randomInt } from 'node:crypto';
import fc from 'fast-check';
import { afterAll, describe, expect, it } from 'vitest';
import { formatIp, formatIpPort, type IpFamily, parseIp } from '../../src/core/index.ts';
import {
  IP_VS_SVC_F_SCHED_MH_FALLBACK,
  IP_VS_SVC_F_SCHED_MH_PORT,
  type VirtualServerKey,
} from '../../src/netlink/ipvs/index.ts';
import {
  elementText,
  type IpvsKernel,
  type Operation,
  openIpvsKernel,
  type SetElement,
  serverKey,
} from '../../src/proxy/ipvs/index.ts';
import { inNetns } from '../../src/sys/index.ts';
import { FakeIpvsKernel } from '../fakes/fake-ipvs-kernel.ts';
import { createNamespace, removeAll } from '../lab/namespace.ts';

// The fake kernel of the unit tests beside the kernel it stands for: both get the same random transactions.

/** Of each family. What is listed after each costs more than what is asked in it. */
const TRANSACTIONS = 40;

afterAll(removeAll);

/** What is asked of a kernel at once. */
type Transaction = readonly Operation[] | 'prepare' | 'removeAll';

/** Addresses in few numbers, so that they are met again. */
const ADDRESSES = {
  IPv4: {
    node: '192.168.0.7',
    prefixLength: 24,
    services: ['10.96.0.1', '10.96.0.2', '192.168.0.7'],
    pods: ['10.244.1.5', '10.244.1.6', '127.0.0.1'],
    noPods: ['255.255.255.255', '224.0.0.1', '0.0.0.0', 'fd00:10:244::5'],
    networks: [
      ['10.0.0.0', 8],
      ['10.1.2.3', 8],
      ['192.0.2.7', 32],
      ['0.0.0.0', 0],
    ],
  },
  IPv6: {
    node: 'fd00:192:168::7',
    prefixLength: 64,
    services: ['fd00:96::1', 'fd00:96::2', 'fd00:192:168::7'],
    pods: ['fd00:10:244::5', 'fd00:10:244::6', '::1'],
    noPods: ['ff02::1', 'fe80::1', '::', '10.244.1.5'],
    networks: [
      ['2001:db8::', 32],
      ['2001:db8::7', 32],
      ['2001:db8::7', 128],
      ['::', 0],
    ],
  },
} as const;

const PROTOCOLS = { TCP: 6, UDP: 17, SCTP: 132 } as const;

function keysOf(family: IpFamily): VirtualServerKey[] {
  const [first, second] = ADDRESSES[family].services.map(parseIp);
  return [
    { kind: 'address', protocol: PROTOCOLS.TCP, address: first!, port: 80 },
    { kind: 'address', protocol: PROTOCOLS.UDP, address: first!, port: 80 },
    { kind: 'address', protocol: PROTOCOLS.SCTP, address: second!, port: 443 },
    { kind: 'mark', family, mark: 0x6e70_0001 },
    { kind: 'mark', family, mark: 0x6e70_0002 },
  ];
}

function serverOperation(family: IpFamily): fc.Arbitrary<Operation> {
  const { pods, noPods } = ADDRESSES[family];
  const key = fc.constantFrom(...keysOf(family));
  const virtual = fc.record({
    key,
    scheduler: fc.oneof(
      { weight: 12, arbitrary: fc.constantFrom('rr', 'wrr', 'lc', 'sh', 'mh') },
      { weight: 1, arbitrary: fc.constantFrom('nonsense', 'longer-than-a-scheduler') },
    ),
    flags: fc.constantFrom(0, IP_VS_SVC_F_SCHED_MH_PORT, IP_VS_SVC_F_SCHED_MH_PORT | IP_VS_SVC_F_SCHED_MH_FALLBACK),
    persistenceSeconds: fc.constantFrom(0, 600, 86_400),
  });
  const destination = fc.record({
    address: fc
      .oneof({ weight: 6, arbitrary: fc.constantFrom(...pods) }, { weight: 1, arbitrary: fc.constantFrom(...noPods) })
      .map(parseIp),
    port: fc.constantFrom(8080, 8081),
    weight: fc.nat(2),
  });
  return fc.oneof(
    {
      weight: 4,
      arbitrary: fc
        .record({ kind: fc.constantFrom('newServer', 'newServer', 'setServer'), virtual })
        .map(({ kind, virtual: made }): Operation => ({ kind, virtual: made, owners: [] })),
    },
    { weight: 1, arbitrary: key.map((of): Operation => ({ kind: 'deleteServer', key: of, owners: [] })) },
    {
      weight: 6,
      arbitrary: fc
        .record({
          kind: fc.constantFrom('newDestination', 'newDestination', 'setDestination', 'deleteDestination'),
          key,
          destination,
        })
        .map(({ kind, key: of, destination: to }): Operation => {
          return { kind, key: of, endpoint: formatIpPort(to.address, to.port), destination: to, owners: [] };
        }),
    },
  );
}

function elementOperation(family: IpFamily): fc.Arbitrary<Operation> {
  const { services, networks } = ADDRESSES[family];
  const address = fc.constantFrom(...services).map(parseIp);
  const target = fc.record({
    address,
    protocol: fc.constantFrom('TCP', 'UDP', 'SCTP'),
    port: fc.constantFrom(80, 443),
  });
  const element: fc.Arbitrary<SetElement> = fc.oneof(
    address.map((ip) => ({ set: 'KUBE-IPVS-IPS', element: { type: 'hash:ip', address: ip } }) as const),
    fc
      .tuple(fc.constantFrom('KUBE-CLUSTER-IP', 'KUBE-NODE-PORT-LOCAL-SCTP-HASH'), target)
      .map(([set, to]) => ({ set, element: { type: 'hash:ip,port', ...to } }) as const),
    fc
      .tuple(target, fc.constantFrom(0x6e70_0001, 0x6e70_0002))
      .map(([to, mark]) => ({ set: 'KUBE-IPVS-MARK', element: { type: 'hash:ip,port', ...to, mark } }) as const),
    fc.tuple(target, address).map(
      ([to, second]) =>
        ({
          set: 'KUBE-LOAD-BALANCER-SOURCE-IP',
          element: { type: 'hash:ip,port,ip', ...to, second },
        }) as const,
    ),
    fc.tuple(target, fc.constantFrom(...networks)).map(
      ([to, [network, prefixLength]]) =>
        ({
          set: 'KUBE-LOAD-BALANCER-SOURCE-CIDR',
          element: { type: 'hash:ip,port,net', ...to, network: parseIp(network), prefixLength },
        }) as const,
    ),
    fc
      .constantFrom(0, 30_080, 65_535)
      .map((port) => ({ set: 'KUBE-NODE-PORT-TCP', element: { type: 'bitmap:port', port } }) as const),
  );
  return fc
    .tuple(fc.constantFrom('addElement', 'addElement', 'deleteElement'), element)
    .map(([kind, member]): Operation => ({ kind, element: member, owners: [] }));
}

function addressOperation(family: IpFamily): fc.Arbitrary<Operation> {
  return fc
    .tuple(fc.constantFrom('bind', 'bind', 'unbind'), fc.constantFrom(...ADDRESSES[family].services))
    .map(([kind, text]): Operation => ({ kind, ip: parseIp(text), owners: [] }));
}

/** Operations of one place each, as a kernel wants them. */
function transaction(family: IpFamily): fc.Arbitrary<Transaction> {
  const several = (operation: fc.Arbitrary<Operation>) => fc.array(operation, { minLength: 1, maxLength: 25 });
  return fc.oneof(
    { weight: 16, arbitrary: several(serverOperation(family)) },
    { weight: 8, arbitrary: several(elementOperation(family)) },
    { weight: 6, arbitrary: several(addressOperation(family)) },
    { weight: 5, arbitrary: fc.constant('prepare' as const) },
    { weight: 2, arbitrary: fc.constant('removeAll' as const) },
  );
}

function inWords(operation: Operation): string {
  const { kind } = operation;
  switch (kind) {
    case 'newServer':
    case 'setServer': {
      const { key, scheduler, flags, persistenceSeconds } = operation.virtual;
      return `${kind} ${serverKey(key)} ${scheduler} flags ${flags} persistence ${persistenceSeconds}`;
    }
    case 'deleteServer':
      return `${kind} ${serverKey(operation.key)}`;
    case 'newDestination':
    case 'setDestination':
    case 'deleteDestination':
      return `${kind} ${serverKey(operation.key)} ${operation.endpoint} weight ${operation.destination.weight}`;
    case 'addElement':
    case 'deleteElement':
      return `${kind} ${elementInWords(operation.element)}`;
    case 'bind':
    case 'unbind':
      return `${kind} ${formatIp(operation.ip)}`;
    default:
      return operation satisfies never;
  }
}

function elementInWords({ set, element }: SetElement): string {
  const mark = element.type === 'hash:ip,port' && element.mark !== undefined ? ` mark ${element.mark}` : '';
  return `${set} ${elementText(element)}${mark}`;
}

/** Each thing asked for, with what became of it. */
function perform(kernel: IpvsKernel, asked: Transaction): string[] {
  if (typeof asked === 'string') {
    kernel[asked]();
    return [asked];
  }
  const outcomes = kernel.apply(asked);
  return asked.map((operation, n) => `${inWords(operation)}: ${outcomes[n]?.errnoName ?? 'done'}`);
}

/** All that a kernel lists, in words; none of it has an order. */
function listing(kernel: IpvsKernel): string[] {
  const { bound, elsewhere } = kernel.listAddresses();
  const destinations = keysOf(kernel.family).flatMap((key) =>
    kernel.listDestinations(key).map(({ address, port, ...rest }) => {
      return `destination ${serverKey(key)} ${formatIpPort(address, port)} ${fields(rest)}`;
    }),
  );
  return [
    ...kernel.listServers().map(({ key, ...rest }) => `server ${serverKey(key)} ${fields(rest)}`),
    ...destinations,
    ...kernel.listElements().map((each) => `member ${elementInWords(each)}`),
    ...bound.map((ip) => `bound ${formatIp(ip)}`),
    ...elsewhere.map((ip) => `elsewhere ${formatIp(ip)}`),
    ...kernel.wrong().map((object) => `wrong ${object}`),
  ].sort();
}

/** By name, bigints as numbers. */
function fields(object: object): string {
  const ordered = Object.entries(object).sort(([a], [b]) => (a < b ? -1 : 1));
  return JSON.stringify(Object.fromEntries(ordered), (_, value) => (typeof value === 'bigint' ? Number(value) : value));
}

describe.each(['IPv4', 'IPv6'] as const)('the fake IPVS kernel, %s', (family) => {
  it('takes and refuses what the kernel does, and lists the same afterwards', () => {
    const { node, prefixLength } = ADDRESSES[family];
    const namespace = createNamespace('ipvs-fake');
    namespace.run('ip', 'link', 'set', 'lo', 'up');
    namespace.run('ip', 'link', 'add', 'eth0', 'type', 'dummy');
    namespace.run('ip', 'address', 'add', `${node}/${prefixLength}`, 'dev', 'eth0');
    const kernel = inNetns(namespace.path, () => openIpvsKernel(family));
    const fake = new FakeIpvsKernel(family, [node]);

    // To see a failure again, put the seed it names here.
    const seed = randomInt(2 ** 31);
    let before = listing(kernel);
    for (const [n, asked] of fc.sample(transaction(family), { seed, numRuns: TRANSACTIONS }).entries()) {
      const story = [`Transaction ${n} of seed ${seed}, on a kernel with`, ...before].join('\n  ');
      const expected = perform(kernel, asked);
      expect(perform(fake, asked), story).toEqual(expected);
      before = listing(kernel);
      expect(listing(fake), [story, 'after', ...expected].join('\n  ')).toEqual(before);
    }
    kernel.close();
  });
});
