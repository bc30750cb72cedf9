import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { removeAll } from '../namespace.ts';
import { reaches } from './fixture.ts';
import { createLinkWorld, type LinkedPod, LONG_MS } from './link-world.ts';

// What `nodeplane diff` says of pods' interfaces, their bridge and sysctls that others changed, and `--repair` makes of it.

const { served, node, diff, addPod, delPod, harms, ip, sysctl } = createLinkWorld();
const port = (link: string, ...args: string[]) => node.run('bridge', 'link', 'set', 'dev', link, ...args);

beforeAll(async () => {
  await served.startAgent();
}, LONG_MS);
afterAll(removeAll);

describe('of a pod at the bridge, others', () => {
  harms({}, [
    ['took the port down', ({ link }) => ip('link', 'set', link, 'down'), /^link "veth.*\n- down\n\+ up$/],
    [
      'took the port out of the bridge',
      ({ link }) => ip('link', 'set', link, 'nomaster'),
      /no port of the bridge\n\+ master cni0/,
    ],
    ['took its hairpin mode', ({ link }) => port(link, 'hairpin', 'off'), /- hairpin off\n\+ hairpin on/],
    ['isolated it', ({ link }) => port(link, 'isolated', 'on'), /- isolated on\n\+ isolated off/],
    [
      'locked it and had it learn and flood nothing',
      ({ link }) => port(link, 'learning', 'off', 'flood', 'off', 'bcast_flood', 'off', 'locked', 'on'),
      /- learning off\n- flood off\n- bcast_flood off\n- locked on\n/,
    ],
    ['switched it off in the bridge', ({ link }) => port(link, 'state', '0'), /- not forwarding\n\+ state forwarding/],
    [
      'changed its MTU',
      ({ link }) => ip('link', 'set', link, 'mtu', '1300'),
      /^(?:bridge.*\n.*\n.*\n)?link "veth.*\n- mtu 1300\n\+ mtu 1500/,
    ],
    [
      'gave it another name',
      ({ link }) => ip('link', 'set', link, 'name', 'strange0'),
      /- name strange0\n\+ name veth/,
    ],
    ['took its alias', ({ link }) => ip('link', 'set', link, 'alias', 'x'), /- alias x\n\+ alias nodeplane\//],
    ['took the bridge down', () => ip('link', 'set', 'cni0', 'down'), /^bridge "cni0"\n- down\n\+ up\n/],
    [
      'took the addresses of the bridge',
      () => ip('address', 'flush', 'dev', 'cni0', 'scope', 'global'),
      /^bridge "cni0"\n\+ address 10\.244\.1\.1\/24\n\+ address fd00:10:244:1::1\/64$/,
    ],
    [
      'took the routes to the pods',
      () => {
        ip('route', 'del', '10.244.1.0/24');
        ip('-6', 'route', 'del', 'fd00:10:244:1::/64');
      },
      /^bridge "cni0"\n\+ route 10\.244\.1\.0\/24 dev cni0 .*\n\+ route fd00:10:244:1::\/64 dev cni0 /,
    ],
    [
      'made the MTU of the bridge smaller',
      () => ip('link', 'set', 'cni0', 'mtu', '1290'),
      /^bridge "cni0"\n- mtu 1290\n\+ mtu 1500$/,
    ],
    ['deleted the bridge', () => ip('link', 'del', 'cni0'), /^bridge "cni0"$/m],
    ['switched IPv6 of the bridge off', () => sysctl('net/ipv6/conf/cni0/disable_ipv6', 1), /\+ address fd00:/],
    [
      'switched the node’s forwarding off',
      () => {
        sysctl('net/ipv4/ip_forward', 0);
        sysctl('net/ipv6/conf/all/forwarding', 0);
      },
      /^forwarding of the node\n- net\/ipv4\/ip_forward=0\n- net\/ipv6\/conf\/all\/forwarding=0\n/,
    ],
    [
      'switched forwarding from the bridge off',
      () => sysctl('net/ipv4/conf/cni0/forwarding', 0),
      /^bridge "cni0"\n- net\/ipv4\/conf\/cni0\/forwarding=0\n/,
    ],
    [
      'had it believe router advertisements',
      () => sysctl('net/ipv6/conf/cni0/accept_ra', 2),
      /- net\/ipv6\/conf\/cni0\/accept_ra=2\n/,
    ],
  ]);
});

describe('of a pod with a mapped port, others', () => {
  const mapped = { runtimeConfig: { portMappings: [{ hostPort: 18080, containerPort: 80, hostIP: '127.0.0.1' }] } };
  it(
    'closed the way from 127.0.0.1',
    async () => {
      const pod = await addPod(mapped);
      sysctl('net/ipv4/conf/cni0/route_localnet', 0);
      expect((await diff()).text).toBe(
        'bridge "cni0"\n- net/ipv4/conf/cni0/route_localnet=0\n+ net/ipv4/conf/cni0/route_localnet=1',
      );
      expect(reaches(node, pod.ips[0]!)).toBe(true);
      expect(await diff('--repair')).toMatchObject({ status: 0, text: '' });
      expect(node.run('cat', '/proc/sys/net/ipv4/conf/cni0/route_localnet').trim()).toBe('1');
      await delPod(pod);
    },
    LONG_MS,
  );
});

describe('of a pod whose traffic is limited, others', () => {
  const bandwidth = { egressRate: 80e6, egressBurst: 8e6, ingressRate: 80e6, ingressBurst: 8e6 };
  harms({ runtimeConfig: { bandwidth } }, [
    [
      'gave it another name',
      ({ link }) => ip('link', 'set', link, 'name', 'strange0'),
      /- name strange0\n\+ name veth/,
    ],
  ]);
});

describe('of a routed pod, others', () => {
  harms({ mode: 'routed' }, [
    ['took the link down', ({ link }) => ip('link', 'set', link, 'down'), /- down\n/],
    ['took its routes', ({ ips }) => ip('route', 'del', ips[0]!), /\+ route 10\.244\.1\.\d+ dev veth/],
    [
      'changed its neighbour entry',
      ({ link, ips }) =>
        ip('neigh', 'replace', ips[0]!, 'dev', link, 'lladdr', '02:00:00:00:00:99', 'nud', 'permanent'),
      /- neighbour 10\.244\.1\.\d+ lladdr 02:00:00:00:00:99\n\+ neighbour/,
    ],
    [
      'took the IPv6 gateway’s address',
      ({ link }) => ip('address', 'del', 'fe80::1/64', 'dev', link),
      /\+ address fe80::1\/64/,
    ],
    [
      'changed the MAC that the pod knows',
      ({ link }) => ip('link', 'set', link, 'address', '02:00:00:00:00:98'),
      /- address 02:00:00:00:00:98\n/,
    ],
    [
      'switched its forwarding off',
      ({ link }) => sysctl(`net/ipv4/conf/${link}/forwarding`, 0),
      /- net\/ipv4\/conf\/veth\w+\/forwarding=0\n/,
    ],
  ]);
});

describe('of the node, others', () => {
  const timeout = 'net/netfilter/nf_conntrack_tcp_timeout_established';
  harms({}, [
    [
      'changed how long connections are tracked',
      () => sysctl(timeout, 100),
      /^sysctl net\/netfilter\/nf_conntrack_tcp_timeout_established\n- .*=100\n\+ .*=86400$/,
    ],
  ]);
});

describe('what no repair mends is told all the same', () => {
  it.each<[string, (pod: LinkedPod) => void, RegExp]>([
    [
      'the pod’s end down',
      ({ namespace }) => namespace.run('ip', 'link', 'set', 'eth0', 'down'),
      /^"eth0" in the pod of attachment "nodeplane\/.*"\n- down\n- lacks the address fd00:.*\n- no repair changes/m,
    ],
    [
      'its address gone',
      ({ namespace, ips }) => namespace.run('ip', 'address', 'del', `${ips[0]}/24`, 'dev', 'eth0'),
      /\n- lacks the address 10\.244\.1\.\d+\/24\n- no repair/,
    ],
    [
      'another MAC',
      ({ namespace }) => namespace.run('ip', 'link', 'set', 'eth0', 'address', '02:00:00:00:00:97'),
      /\n- address 02:00:00:00:00:97, not 0a:58:/,
    ],
    [
      'the link gone',
      ({ link }) => ip('link', 'del', link),
      /^link "veth\w+" of attachment "nodeplane\/.*"\n- no repair makes it: delete the pod/m,
    ],
  ])(
    '%s',
    async (_, harm, told) => {
      const pod = await addPod();
      harm(pod);
      const found = await diff();
      expect(found.status).toBe(1);
      expect(found.text).toMatch(told);
      expect(await diff('--repair')).toMatchObject({ status: 1, text: found.text });
      await delPod(pod);
      expect(await diff()).toMatchObject({ status: 0, text: '' });
    },
    LONG_MS,
  );
});

it.each([
  [
    'the bridge of another network, with the same subnet',
    'ip link add kube-bridge type bridge; ip link set kube-bridge up; ip address add 10.244.1.1/24 dev kube-bridge; ip route del 10.244.1.0/24 dev cni0; ip route append 10.244.1.0/24 dev cni0 src 10.244.1.1',
    'ip link del kube-bridge',
    /^bridge "cni0"\n- what the node sends to 10\.244\.1\.\d+ goes by kube-bridge, .*\n\+ what the node sends to \S+ goes by cni0$/,
  ],
  [
    'a more specific route of another network',
    'ip route add blackhole 10.244.1.0/25',
    'ip route del blackhole 10.244.1.0/25',
    /^bridge "cni0"\n- what the node sends to 10\.244\.1\.\d+ goes nowhere \(EINVAL\), .*\(ip route show match /,
  ],
])(
  'a route in the way of the node is told and left: %s',
  async (_, harm, remedy, told) => {
    const pod = await addPod();
    node.run('sh', '-ec', harm);
    expect(reaches(node, pod.ips[0]!)).toBe(false);
    const found = await diff();
    expect(found).toEqual({ status: 1, text: expect.stringMatching(told) });
    expect(await diff('--repair')).toEqual(found);
    node.run('sh', '-ec', remedy);
    expect(reaches(node, pod.ips[0]!)).toBe(true);
    expect(await diff()).toEqual({ status: 0, text: '' });
    await delPod(pod);
  },
  LONG_MS,
);

it(
  'what is not ours is left alone: other links, addresses of the bridge, ports of others',
  async () => {
    const pod = await addPod();
    ip('link', 'add', 'strange1', 'type', 'veth', 'peer', 'name', 'strange2');
    ip('link', 'set', 'strange1', 'master', 'cni0');
    ip('address', 'add', 'fd00:99::1/64', 'dev', 'cni0');
    expect(await diff()).toMatchObject({ status: 0, text: '' });
    expect(await diff('--repair')).toMatchObject({ status: 0, text: '' });
    expect(ip('link', 'show', 'strange1')).toContain('master cni0');
    expect(ip('address', 'show', 'cni0')).toContain('fd00:99::1/64');
    ip('link', 'del', 'strange1');
    ip('address', 'del', 'fd00:99::1/64', 'dev', 'cni0');
    await delPod(pod);
  },
  LONG_MS,
);

it(
  'pods that come and go meanwhile are no difference',
  async () => {
    let ended = false;
    const churn = async () => {
      while (!ended) await delPod(await addPod());
    };
    const churns = [churn(), churn(), churn()];
    const stays = await addPod();
    const seen = [];
    for (let i = 0; i < 12; i++) seen.push(await diff());
    ended = true;
    await Promise.all(churns);
    for (const found of seen) expect(found).toEqual({ status: 0, text: '' });
    await delPod(stays);
  },
  LONG_MS,
);
