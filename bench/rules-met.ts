import { IptablesDataplane } from '../src/proxy/iptables/index.ts';
import { programName } from '../src/proxy/rules/index.ts';
import type { Exec } from '../src/sys/index.ts';
import { execIn } from '../test/lab/iptables/fixtures.ts';
import { sampleNode, samplePlan } from '../test/samples/sample-plan.ts';
import { samplePorts } from './cluster.ts';
import { connectOnce, createPacketPath } from './packet-path.ts';
import { withinNamespace } from './within-namespace.ts';

const VARIANT = 'legacy';
const SERVICE_PORT = 80;
const FIRST_LOCAL_PORT = 10_000;
/** Made as a bitmap of TCP ports with a packet counter each. */
const PROBES = 'probes';

/**
 * Has the kernel count the rules of table nat that first packets meet: connects `rounds` times to each of N Services.
 *
 * A rule's own counter counts matches, not looks. So before each rule a probe is put: a rule without a target whose
 * only match finds the packet's source port in an ipset, which counts there. Whoever gets as far as a rule has passed its
 * probe; each connection has a source port of its own, and nat sees its first packet alone. So a port's counter is
 * the number of rules that were tried for one packet, chance included, in all chains and hooks of the table.
 *
 * @returns one number a connection
 */
export async function countRulesMet(services: number, endpoints: number, rounds: number): Promise<number[]> {
  const client = await createPacketPath('count');
  const exec = execIn(client);
  const ports = samplePorts(services, endpoints);
  const dataplane = new IptablesDataplane({ family: 'IPv4', variant: VARIANT, exec });
  await dataplane.resync(samplePlan('IPv4', sampleNode(), ports));
  const lastPort = FIRST_LOCAL_PORT + services - 1;
  await succeed(exec, 'ipset', [
    'create',
    PROBES,
    'bitmap:port',
    'range',
    `${FIRST_LOCAL_PORT}-${lastPort}`,
    'counters',
  ]);
  const nat = await succeed(exec, programName('IPv4', VARIANT, 'save'), ['-t', 'nat']);
  await succeed(exec, programName('IPv4', VARIANT, 'restore'), [], withProbes(nat));

  const counts: number[] = [];
  for (let round = 0; round < rounds; round++) {
    await succeed(exec, 'ipset', ['flush', PROBES]);
    // A port that is added again would go on counting where it stood.
    await succeed(exec, 'ipset', ['add', PROBES, `${FIRST_LOCAL_PORT}-${lastPort}`, 'packets', '0']);
    await withinNamespace(client.path, async () => {
      for (const [n, { clusterIp }] of ports.entries()) {
        await connectOnce({
          host: clusterIp.bytes.join('.'),
          port: SERVICE_PORT,
          localPort: FIRST_LOCAL_PORT + n,
        });
      }
    });
    const met = [...(await succeed(exec, 'ipset', ['save', PROBES])).matchAll(/^add .* packets (\d+)/gm)];
    counts.push(...met.map(([, packets]) => Number(packets)));
  }
  if (counts.length !== services * rounds || counts.includes(0)) {
    throw new Error(`Some of ${services * rounds} connections were not counted`);
  }
  return counts;
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
