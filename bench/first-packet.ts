import { IptablesDataplane } from '../src/proxy/iptables/index.ts';
import { type IptablesVariant, programName } from '../src/proxy/rules/index.ts';
import { execIn, useOwnLockFile } from '../test/lab/iptables/fixtures.ts';
import type { TestNamespace } from '../test/lab/namespace.ts';
import { sampleNode, samplePlan } from '../test/samples/sample-plan.ts';
import { samplePorts } from './cluster.ts';
import { connectOnce, createPacketPath } from './packet-path.ts';
import { type Figure, HOLDS_THE_LINE, inTurns, oursAtMost, percentile, ratioAtMost, report } from './report/index.ts';
import { countRulesMet } from './rules-met.ts';
import { upstreamLayout } from './upstream-layout.ts';
import { withinNamespace } from './within-namespace.ts';

/** iptables-nft loads upstream's layout slowly: its cost grows with the square of the chains. */
const SIZES: Readonly<Record<IptablesVariant, number>> = { legacy: 10_000, nft: 1000 };
const CONNECTIONS = 2000;
const WARM_UP = 300;
/** Each chooses endpoints anew: what is rare is seen too. */
const COUNTING_ROUNDS = 3;
const ENDPOINTS = 10;

/**
 * How long connecting to a Service takes through our layout, through upstream's, and straight to the endpoint without
 * any rule, in turns; and how many rules a first packet meets, counted by the kernel.
 */
export async function benchFirstPacket(): Promise<void> {
  useOwnLockFile();
  for (const variant of ['legacy', 'nft'] as const) {
    report(`first-packet-${variant}, ${SIZES[variant]} x 1, ${CONNECTIONS} connects`, await latency(variant));
  }
  const services = SIZES.legacy;
  const met = await countRulesMet(services, ENDPOINTS, COUNTING_ROUNDS);
  const mean = met.reduce((sum, count) => sum + count, 0) / met.length;
  const worst = met.reduce((most, count) => Math.max(most, count), 0);
  const what = (which: string) => `nat rules met, counted, ${which}`;
  // Upstream: the jump to KUBE-SERVICES, half of that or all of it, the rule for masquerading, half of the endpoints or
  // all of them, two rules of an endpoint, and two rules of postrouting.
  const peerName = 'upstream’s layout, computed';
  report(`first-packet-rules, ${services} x ${ENDPOINTS}, ${met.length} connects`, [
    {
      what: what('mean'),
      headline: `Rules the first packet of a connection meets, ${services} Services, iptables`,
      unit: '',
      ours: mean,
      target: oursAtMost(24),
      peer: 1 + services / 2 + 1 + ENDPOINTS / 2 + 2 + 2,
      peerName,
    },
    {
      what: what('worst'),
      unit: '',
      ours: worst,
      target: oursAtMost(48),
      peer: 1 + services + 1 + ENDPOINTS + 2 + 2,
      peerName,
    },
  ]);
}

async function latency(variant: IptablesVariant): Promise<Figure[]> {
  const ports = samplePorts(SIZES[variant], 1);
  const ours = await createPacketPath(`ours-${variant}`);
  const upstream = await createPacketPath(`upstream-${variant}`);
  const bare = await createPacketPath(`bare-${variant}`);
  const dataplane = new IptablesDataplane({ family: 'IPv4', variant, exec: execIn(ours) });
  await dataplane.resync(samplePlan('IPv4', sampleNode(), ports));
  const input = upstreamLayout(ports).replace('COMMIT\n', '-A OUTPUT -j KUBE-SERVICES\nCOMMIT\n');
  const loaded = await execIn(upstream)(programName('IPv4', variant, 'restore'), ['--noflush'], { input });
  if (loaded.status !== 0) throw new Error(`Upstream's layout was refused: ${loaded.stderr}`);

  const took = { ours: [] as number[], upstream: [] as number[], bare: [] as number[] };
  for (let connection = 0; connection < WARM_UP + CONNECTIONS; connection++) {
    const { clusterIp, port, clusterEndpoints } = ports[Math.floor(Math.random() * ports.length)]!;
    const service = { host: clusterIp.bytes.join('.'), port };
    const endpoint = { host: clusterEndpoints[0]!.ip.bytes.join('.'), port: clusterEndpoints[0]!.port };
    const connect = async (from: TestNamespace, target: typeof service, into: number[]) => {
      const ms = await withinNamespace(from.path, () => connectOnce(target));
      if (connection >= WARM_UP) into.push(ms * 1000);
    };
    await connect(ours, service, took.ours);
    await connect(upstream, service, took.upstream);
    await connect(bare, endpoint, took.bare);
  }
  const figure = (percent: number, peer: 'upstream' | 'bare', peerName: string): Figure => ({
    what: `connect, p${percent}`,
    unit: 'us',
    ...inTurns(took.ours, took[peer], (values) => percentile(values, percent)),
    peerName,
  });
  const upstreamName = 'upstream’s layout';
  const bareName = 'no rules, straight to the endpoint';
  return [
    { ...figure(50, 'upstream', upstreamName), target: ratioAtMost(1, HOLDS_THE_LINE) },
    { ...figure(50, 'bare', bareName), target: ratioAtMost(1.6, HOLDS_THE_LINE) },
    figure(99, 'upstream', upstreamName),
    figure(99, 'bare', bareName),
  ];
}
