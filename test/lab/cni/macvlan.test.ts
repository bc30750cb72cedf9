import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createHost, type Host } from '../host.ts';
import type { Agent } from '../lab.ts';
import { createNamespace, removeAll, type TestNamespace } from '../namespace.ts';
import { linksOf } from './fixture.ts';
import type { PluginCall, PluginJson } from './plugin.ts';
import { createServedNode, installedConfig } from './served-node.ts';

// The node's eth0 is one end of a wire that an outside host is plugged into, too: the physical network.
const served = createServedNode();
const { node } = served;
const outside = served.addClient('outside');
const FAMILIES = ['IPv4', 'IPv6'] as const;
const ANNOTATION = 'nodeplane.io/assign-macvlan';
const SERVICE = { IPv4: '10.96.0.10', IPv6: 'fd00:96::10' };
/** What the pod gives its own macvlan0, on the network of the wire. */
const OWN = { IPv4: '192.168.50.200', IPv6: 'fd00:50::200' };
let agent: Agent;

/** A call for a pod of namespace `egress` that has these annotations. */
function asking(annotations: object, change: object = {}): Partial<PluginCall> {
  const runtimeConfig = { 'io.kubernetes.cri.pod-annotations': annotations };
  return {
    config: { ...installedConfig(served.conflist), runtimeConfig, ...change },
    env: { CNI_ARGS: 'IgnoreUnknown=1;K8S_POD_NAMESPACE=egress;K8S_POD_NAME=router-1' },
  };
}

async function add(label: string, call: Partial<PluginCall>): Promise<Host & { readonly result: PluginJson }> {
  const namespace = createNamespace(label);
  const { status, stdout, json } = await served.call('ADD', namespace, call);
  if (status !== 0) throw new Error(stdout);
  const ips = json!.ips!.map(({ address }) => address.replace(/\/.*/, ''));
  return { ...createHost({ name: label, namespace, ips }), result: json! };
}

const checked = (pod: Host & { readonly result: PluginJson }) =>
  served.call('CHECK', pod.namespace, { config: { ...installedConfig(served.conflist), prevResult: pod.result } });
const namesIn = (namespace: TestNamespace) => linksOf(namespace).map(({ ifname }) => ifname);
const macvlanIn = (pod: TestNamespace) => JSON.parse(pod.run('ip', '-j', '-d', 'link', 'show', 'macvlan0'))[0];

function manifests(web: Host): string {
  const slices = FAMILIES.map(
    (family) => `---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: { name: web-${family.toLowerCase()}, namespace: demo, labels: { kubernetes.io/service-name: web } }
addressType: ${family}
ports: [{ port: 8080 }]
endpoints: [{ addresses: ["${web.ip(family)}"], nodeName: node-1 }]
`,
  );
  return `apiVersion: networking.k8s.io/v1
kind: ServiceCIDR
metadata: { name: kubernetes }
spec: { cidrs: [10.96.0.0/12, "fd00:96::/112"] }
---
apiVersion: v1
kind: Service
metadata: { name: web, namespace: demo }
spec: { clusterIPs: [${SERVICE.IPv4}, "${SERVICE.IPv6}"], clusterIP: ${SERVICE.IPv4}, ports: [{ port: 80, targetPort: 8080 }] }
${slices.join('')}`;
}

beforeAll(async () => {
  const cidrs = 'apiVersion: networking.k8s.io/v1\nkind: ServiceCIDR\nmetadata: { name: kubernetes }\n';
  writeFileSync(
    join(served.folder, 'manifests', 'web.yaml'),
    `${cidrs}spec: { cidrs: [10.96.0.0/12, "fd00:96::/112"] }\n`,
  );
  agent = await served.startAgent({ flags: ['--cni-macvlan-namespaces', 'egress'] });
  await outside.serve({ port: 7000 });
  await node.serve({ port: 7000 });
});
afterAll(removeAll);

describe('a pod that asks for macvlan0', () => {
  let pod: Host & { readonly result: PluginJson };
  let web: Host;

  beforeAll(async () => {
    pod = await add('router', asking({ [ANNOTATION]: 'true' }));
    web = await add('web', {});
    await web.serve({ port: 8080 });
    writeFileSync(join(served.folder, 'manifests', 'web.yaml'), manifests(web));
    for (const family of FAMILIES) {
      const prefix = family === 'IPv4' ? '24' : '64';
      pod.namespace.run(
        'ip',
        'address',
        'add',
        `${OWN[family]}/${prefix}`,
        'dev',
        'macvlan0',
        ...(family === 'IPv6' ? ['nodad'] : []),
      );
    }
  });

  afterAll(async () => {
    for (const { namespace } of [pod, web]) await served.call('DEL', namespace);
    expect(served.reservations()).toEqual([]);
  });

  it('is known by the annotations that the installed list makes the runtime pass', () => {
    const [{ capabilities }] = JSON.parse(readFileSync(served.conflist, 'utf8')).plugins;
    expect(capabilities).toMatchObject({ 'io.kubernetes.cri.pod-annotations': true });
  });

  it('has it besides eth0, up, and is told so; a pod that does not ask has none', () => {
    const { interfaces, ips, routes } = pod.result;
    const [eth0, macvlan0] = ['eth0', 'macvlan0'].map((name) => interfaces!.findIndex((one) => one.name === name));
    expect(interfaces![macvlan0!]).toMatchObject({ sandbox: pod.namespace.path, mtu: 1500 });
    expect(ips!.map((ip) => ip.interface)).toEqual([eth0, eth0]);
    const byEth0 = { IPv4: '10.244.1.1', IPv6: 'fd00:10:244:1::1' };
    for (const [dst, gw] of [
      [`${node.ip()}/32`, byEth0.IPv4],
      [`${node.ip('IPv6')}/128`, byEth0.IPv6],
      ['10.96.0.0/12', byEth0.IPv4],
      ['fd00:96::/112', byEth0.IPv6],
    ] as const) {
      expect(routes).toContainEqual({ dst, gw });
    }
    const link = macvlanIn(pod.namespace);
    expect(link).toMatchObject({ address: interfaces![macvlan0!]!.mac, linkinfo: { info_data: { mode: 'private' } } });
    expect(link.flags).toContain('UP');
    expect(namesIn(web.namespace)).toEqual(['lo', 'eth0']);
  });

  it.each(FAMILIES)('reaches an outside host as one of its neighbours, and is reached, %s', async (family) => {
    const target = { ip: outside.ip(family), port: 7000 };
    expect(await pod.connect(target)).toMatchObject({ by: 'outside', source: OWN[family] });
    await pod.serve({ port: 7001, ip: OWN[family] });
    expect(await outside.connect({ ip: OWN[family], port: 7001 })).toMatchObject({
      by: 'router',
      source: outside.ip(family),
    });
  });

  it.each(FAMILIES)(
    'reaches the node and Services through eth0, also with another default route, %s',
    async (family) => {
      const [flag, gateway] = family === 'IPv4' ? ['-4', '192.168.50.254'] : ['-6', 'fd00:50::fe'];
      pod.namespace.run('ip', flag, 'route', 'replace', 'default', 'via', gateway, 'dev', 'macvlan0');
      pod.namespace.run('ip', flag, 'route', 'flush', 'cache');
      expect(await pod.connect({ ip: node.ip(family), port: 7000 })).toMatchObject({
        by: 'node-1',
        source: pod.ip(family),
      });
      await expect
        .poll(() => pod.connect({ ip: SERVICE[family], port: 80 }), { timeout: 10_000 })
        .toMatchObject({ by: 'web' });
    },
  );

  it('does not reach the node without its route, and CHECK says that it is missing', async () => {
    expect(await checked(pod)).toMatchObject({ status: 0, stdout: '' });
    pod.namespace.run('ip', 'route', 'del', `${node.ip()}/32`);
    expect(await pod.connect({ ip: node.ip(), port: 7000 })).not.toMatchObject({
      kind: 'answered',
    });
    const missing = await checked(pod);
    expect(missing.json).toMatchObject({ code: 108, msg: expect.stringContaining(`the route ${node.ip()}/32`) });
    pod.namespace.run('ip', 'route', 'add', `${node.ip()}/32`, 'via', '10.244.1.1');
    expect(await checked(pod)).toMatchObject({ status: 0 });
  });

  it('may have it by CHECK whatever the rules have become', async () => {
    const { config } = asking(
      { [ANNOTATION]: 'eth7' },
      { prevResult: pod.result, macvlan: { namespaces: [], routes: null } },
    );
    expect(await served.call('CHECK', pod.namespace, { config: config! })).toMatchObject({ status: 0, stdout: '' });
  });

  it('fails CHECK when macvlan0 is down or gone', async () => {
    pod.namespace.run('ip', 'link', 'set', 'macvlan0', 'down');
    expect((await checked(pod)).json).toMatchObject({ code: 108, msg: expect.stringContaining('"macvlan0" is down') });
    pod.namespace.run('ip', 'link', 'del', 'macvlan0');
    expect((await checked(pod)).json).toMatchObject({ msg: expect.stringContaining('there is no macvlan "macvlan0"') });
  });
});

it('as many annotations as the API server takes keep no pod from coming and going', async () => {
  const call = asking({ [ANNOTATION]: 'true', 'demo/large': '\u0001'.repeat(250 * 1024) });
  const pod = await add('large', call);
  expect(namesIn(pod.namespace)).toEqual(['lo', 'eth0', 'macvlan0']);
  expect(await served.call('DEL', pod.namespace, call)).toMatchObject({ status: 0, stdout: '' });
  expect(namesIn(pod.namespace)).toEqual(['lo']);
});

describe('macvlan0 goes', () => {
  const config = () => installedConfig(served.conflist);

  it('with DEL, without the annotation, and however the pod’s namespace is named', async () => {
    for (const netns of [undefined, '', '/run/netns/none']) {
      const pod = await add('gone', asking({ 'pod.network.openshift.io/assign-macvlan': 'eth0' }));
      expect(namesIn(pod.namespace)).toEqual(['lo', 'eth0', 'macvlan0']);
      const call = netns === undefined ? {} : { netns };
      expect(await served.call('DEL', pod.namespace, { config: config(), ...call })).toMatchObject({
        status: 0,
        stdout: '',
      });
      expect(namesIn(pod.namespace)).toEqual(['lo']);
      expect(await served.call('DEL', pod.namespace, { config: config() })).toMatchObject({ status: 0, stdout: '' });
    }
  });

  it('with GC, and not from pods that stay', async () => {
    const [kept, lost] = [
      await add('kept', asking({ [ANNOTATION]: 'true' })),
      await add('lost', asking({ [ANNOTATION]: 'true' })),
    ];
    const valid = [{ containerID: kept.namespace.name, ifname: 'eth0' }];
    const gc = { ...config(), 'cni.dev/valid-attachments': valid };
    expect(await served.call('GC', undefined, { config: gc })).toMatchObject({ status: 0, stdout: '' });
    expect(namesIn(lost.namespace)).toEqual(['lo']);
    expect(namesIn(kept.namespace)).toEqual(['lo', 'eth0', 'macvlan0']);
    expect(await served.call('DEL', kept.namespace)).toMatchObject({ status: 0 });
  });

  it('with its pod, whose addresses the next agent gives back, whether pods may have it or not', async () => {
    const pod = await add('vanished', asking({ [ANNOTATION]: 'true' }));
    expect(served.reservations().length).toBeGreaterThan(0);
    const other = await add('stays', asking({ [ANNOTATION]: 'true' }));
    await agent.stop();
    await pod.remove();
    agent = await served.startAgent();
    expect(namesIn(other.namespace)).toEqual(['lo', 'eth0', 'macvlan0']);
    await expect.poll(() => served.reservations().length, { timeout: 10_000 }).toBe(2);
    expect(await served.call('DEL', other.namespace)).toMatchObject({ status: 0, stdout: '' });
    expect(namesIn(other.namespace)).toEqual(['lo']);
    expect(served.reservations()).toEqual([]);
    const unasked = await add('off', asking({ [ANNOTATION]: 'true' }));
    expect(namesIn(unasked.namespace)).toEqual(['lo', 'eth0']);
    await served.call('DEL', unasked.namespace);
  });
});
