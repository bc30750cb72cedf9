import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { IpFamily } from '../../../src/core/index.ts';
import { makeService, makeSlice } from '../../fakes/service-objects.ts';
import { type Host, type LabNode, type Outcome, type Pod, removeAll } from '../lab.ts';
import { ip } from '../wire.ts';
import { addressesOf, type Cluster, createCluster, FAMILIES, POD_PORT } from './cluster.ts';

// Services whose only endpoint is on another node than the one that is asked, in each mode of routes.

/** Long enough on a busy machine for an answer, short enough to wait for where none may come. */
const SILENCE_MS = 500;
const PORT = 80;

/** Which Services there are for each pod: of traffic policies Cluster or Local, external and internal alike. */
const POLICIES = ['Cluster', 'Local'] as const;
type Policy = (typeof POLICIES)[number];

/** What the checks are about: `web` is the only endpoint, on the node `there`; `here` is a node without endpoints. */
interface Scene {
  readonly mode: 'host-gw' | 'vxlan' | 'auto';
  readonly family: IpFamily;
  readonly outside: Host;
  readonly client: Pod;
  readonly here: LabNode;
  readonly web: Pod;
  readonly there: LabNode;
}

interface Check {
  readonly name: string;
  readonly from: (scene: Scene) => Host;
  readonly policy: Policy;
  /** A node: its NodePort. */
  readonly to: 'clusterIP' | 'here' | 'there';
  /** Whose address `web` sees; nothing: packets are dropped. */
  readonly source?: (scene: Scene) => readonly string[];
}

const own = (host: (scene: Scene) => Host) => (scene: Scene) => [host(scene).ip(scene.family)];
/** What a pod sends to another node's own address has its node's where there is a tunnel (docs/routes.md, Masquerading). */
const clientOrItsNode = (scene: Scene) => (scene.mode === 'host-gw' ? own(client) : anyOf(here))(scene);
const anyOf = (node: (scene: Scene) => LabNode) => (scene: Scene) => addressesOf(node(scene), scene.family);
const client = ({ client }: Scene) => client;
const web = ({ web }: Scene) => web;
const outside = ({ outside }: Scene) => outside;
const here = ({ here }: Scene) => here;
const there = ({ there }: Scene) => there;

const CHECKS: readonly Check[] = [
  { name: 'a pod keeps its address', from: client, policy: 'Cluster', to: 'clusterIP', source: own(client) },
  { name: 'a process on a node', from: here, policy: 'Cluster', to: 'clusterIP', source: anyOf(here) },
  { name: 'the endpoint itself', from: web, policy: 'Cluster', to: 'clusterIP', source: anyOf(there) },
  { name: 'a client outside', from: outside, policy: 'Cluster', to: 'here', source: anyOf(here) },
  { name: 'the endpoint itself, by another node', from: web, policy: 'Cluster', to: 'here', source: anyOf(here) },
  { name: 'a client outside keeps its address', from: outside, policy: 'Local', to: 'there', source: own(outside) },
  { name: 'a pod, as without a Service', from: client, policy: 'Local', to: 'there', source: clientOrItsNode },
  { name: 'a client outside is dropped', from: outside, policy: 'Local', to: 'here' },
  { name: 'the endpoint itself', from: web, policy: 'Local', to: 'clusterIP', source: anyOf(there) },
  { name: 'a process on the node', from: there, policy: 'Local', to: 'clusterIP', source: anyOf(there) },
  { name: 'a pod of another node is dropped', from: client, policy: 'Local', to: 'clusterIP' },
];

/** The pod with the endpoint in each mode: host-gw needs it on the link, auto has a tunnel only behind the router. */
const WORLDS = [
  { mode: 'host-gw', families: FAMILIES, web: 1 },
  { mode: 'vxlan', families: FAMILIES, web: 1 },
  { mode: 'auto', families: FAMILIES, web: 2 },
  { mode: 'auto', families: ['IPv4'], web: 2 },
  { mode: 'auto', families: ['IPv6'], web: 2 },
] as const;

afterAll(removeAll);

describe.each(WORLDS)('--routes $mode, a cluster of $families', ({ mode, families, web: number }) => {
  let cluster: Cluster;
  let outside: Host;

  beforeAll(async () => {
    cluster = await createCluster({ families });
    outside = cluster.lab.addClient('outside', {
      ips: families.map((family) => (family === 'IPv4' ? '192.168.50.101' : 'fd00:50::101')),
    });
    ip(
      outside.namespace,
      families.map((family) =>
        family === 'IPv4' ? 'route add 192.168.60.0/24 via 192.168.50.254' : 'route add fd00:60::/64 via fd00:50::fe',
      ),
    );
    for (const policy of POLICIES) putService(cluster, families, policy, number);
    await cluster.start('--routes', mode, '--cluster-cidr', clusterCidr(families));
  });
  afterAll(() => cluster.stop());

  const scene = (family: IpFamily): Scene => ({
    mode,
    family,
    outside,
    client: cluster.pods[0],
    here: cluster.nodes[0],
    web: cluster.pods[number],
    there: cluster.nodes[number],
  });
  const connect = ({ from, to, policy }: Check, input: Scene, timeoutMs: number) =>
    from(input).connect(
      to === 'clusterIP'
        ? { ip: clusterIpOf(policy, input.family), port: PORT }
        : { ip: input[to].ip(input.family), port: nodePortOf(policy) },
      { timeoutMs },
    );

  describe.each(families)('%s', (family) => {
    it('a pod is reached by a pod, which keeps its address', async () => {
      const input = scene(family);
      await expect
        .poll(() => cluster.ask(input.client, input.web, family))
        .toBe(`${input.web.name} saw ${input.client.ip(family)}`);
    });

    it.each(titled(CHECKS.filter(({ source }) => source)))('%s', async (_, check) => {
      const input = scene(family);
      const sources = check.source!(input);
      const outcome = () => connect(check, input, 1000).then((got) => said(got, sources));
      await expect.poll(outcome).toBe(`${input.web.name} answered, saw an address expected`);
    });

    it.concurrent.each(titled(CHECKS.filter(({ source }) => !source)))('%s', async (_, check) => {
      expect(await connect(check, scene(family), SILENCE_MS)).toMatchObject({ kind: 'timeout' });
    });
  });
});

/** Each with its title, for `%s`, which writes no quotes as `$name` would. */
function titled(checks: readonly Check[]): [string, Check][] {
  return checks.map((check) => [`policy ${check.policy}, ${check.to}: ${check.name}`, check]);
}

function said(outcome: Outcome, sources: readonly string[]): string {
  if (outcome.kind !== 'answered') return outcome.kind;
  const { by, source } = outcome;
  return `${by} answered, saw ${sources.includes(source) ? 'an address expected' : `${source}, not ${sources}`}`;
}

function putService({ objects, pods, nodes }: Cluster, families: readonly IpFamily[], policy: Policy, web: number) {
  const name = `default/${policy.toLowerCase()}`;
  const clusterIPs = families.map((family) => clusterIpOf(policy, family));
  const ports = [{ port: PORT, targetPort: POD_PORT, nodePort: nodePortOf(policy) }];
  objects.put(
    makeService(name, {
      type: 'NodePort',
      clusterIP: clusterIPs[0]!,
      clusterIPs,
      ipFamilies: families,
      externalTrafficPolicy: policy,
      internalTrafficPolicy: policy,
      ports,
    }),
  );
  for (const family of families) {
    const endpoint = { addresses: [pods[web]!.ip(family)], nodeName: nodes[web]!.name };
    objects.put(makeSlice(name, [endpoint], { addressType: family, ports: [{ port: POD_PORT }] }));
  }
}

function clusterIpOf(policy: Policy, family: IpFamily): string {
  const number = POLICIES.indexOf(policy) + 1;
  return family === 'IPv4' ? `10.96.0.${number}` : `fd00:10:96::${number}`;
}

function nodePortOf(policy: Policy): number {
  return 30081 + POLICIES.indexOf(policy);
}

function clusterCidr(families: readonly IpFamily[]): string {
  return families.map((family) => (family === 'IPv4' ? '10.244.0.0/16' : 'fd00:10:244::/48')).join(',');
}
