import { connect } from 'node:net';
import type { ServicePortPlan } from '../src/proxy/index.ts';
import { IptablesDataplane } from '../src/proxy/iptables/index.ts';
import { programName } from '../src/proxy/rules/index.ts';
import type { Exec } from '../src/sys/index.ts';
import { createHost } from '../test/lab/host.ts';
import { execIn } from '../test/lab/iptables/fixtures.ts';
import { sampleNode, samplePlan } from '../test/samples/sample-plan.ts';
import { samplePorts } from './cluster.ts';
import { createNodePath, NODE_ADDRESSES } from './packet-nodes.ts';
import { withinNamespace } from './within-namespace.ts';

const VARIANT = 'legacy';
const SERVICE_PORT = 80;
const FIRST_LOCAL_PORT = 10_000;
/** Made as a bitmap of TCP ports with a packet counter each. */
const PROBES = 'probes';

/** Who connects. */
export const CLIENTS = ['a pod of the node', 'the node itself'] as const;
export type Client = (typeof CLIENTS)[number];

/** How many Services with how many endpoints, and how often each client connects to each Service. */
export interface Counting {
  readonly services: number;
  readonly endpoints: number;
  readonly rounds: number;
}

/**
 * Has the kernel count the rules of table nat that first packets meet.
 *
 * A rule's own counter counts matches, not looks. So before each rule a probe is put: a rule without a target whose
 * only match finds the packet's source port in an ipset, which counts there. Whoever gets as far as a rule has passed its
 * probe; each connection has a source port of its own, and nat sees its first packet alone. So a port's counter is
 * the number of rules that were tried for one packet, chance included, in all chains and hooks of the table.
 *
 * @returns one number a connection
 */
export async function countRulesMet({ services, endpoints, rounds }: Counting): Promise<Record<Client, number[]>> {
  const { client: pod, node, server, port } = createNodePath('count');
  await createHost({ name: 'server-count', namespace: server, ips: [] }).serve({ port });
  const exec = execIn(node);
  const ports = samplePorts(services, endpoints);
  const dataplane = new IptablesDataplane({ family: 'IPv4', variant: VARIANT, exec });
  await dataplane.resync(samplePlan('IPv4', sampleNode(NODE_ADDRESSES), ports));
  const lastPort = FIRST_LOCAL_PORT + services - 1;
  const range = `${FIRST_LOCAL_PORT}-${lastPort}`;
  await succeed(exec, 'ipset', ['create', PROBES, 'bitmap:port', 'range', range, 'counters']);
  const nat = await succeed(exec, programName('IPv4', VARIANT, 'save'), ['-t', 'nat']);
  await succeed(exec, programName('IPv4', VARIANT, 'restore'), [], withProbes(nat));

  const counts: Record<Client, number[]> = { 'a pod of the node': [], 'the node itself': [] };
  for (const [who, { path }] of [['a pod of the node', pod] as const, ['the node itself', node] as const]) {
    for (let round = 0; round < rounds; round++) {
      await succeed(exec, 'ipset', ['flush', PROBES]);
      // A port that is added again would go on counting where it stood.
      await succeed(exec, 'ipset', ['add', PROBES, range, 'packets', '0']);
      await withinNamespace(path, () => connectToEach(ports));
      const met = [...(await succeed(exec, 'ipset', ['save', PROBES])).matchAll(/^add .* packets (\d+)/gm)];
      counts[who].push(...met.map(([, packets]) => Number(packets)));
    }
    if (counts[who].length !== services * rounds || counts[who].includes(0)) {
      throw new Error(`Some of ${services * rounds} connections of ${who} were not counted`);
    }
  }
  return counts;
}

/** One after the other, each from a port of its own. */
async function connectToEach(ports: readonly ServicePortPlan[]): Promise<void> {
  for (const [n, { clusterIp }] of ports.entries()) {
    await connectOnce(clusterIp.bytes.join('.'), FIRST_LOCAL_PORT + n);
  }
}

/** Makes a TCP connection and resets it, so that its port is free again. */
function connectOnce(host: string, localPort: number): Promise<void> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host, port: SERVICE_PORT, localPort });
    socket.on('error', reject);
    socket.on('connect', () => socket.resetAndDestroy());
    socket.on('close', () => resolve());
  });
}

/** What iptables-save printed, with a probe before each rule. */
function withProbes(saved: string): string {
  return saved.replace(/^-A (\S+) .*$/gm, `-A $1 -p tcp -m set --match-set ${PROBES} src\n$&`);
}

async function succeed(exec: Exec, program: string, args: readonly string[], input?: string): Promise<string> {
  const { status, stdout, stderr } = await exec(program, args, { ...(input !== undefined && { input }) });
  if (status !== 0) throw new Error(`${program} ${args.join(' ')} failed with status ${status}: ${stderr}`);
  return stdout;
}
