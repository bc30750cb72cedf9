import { IptablesDataplane } from '../src/proxy/iptables/index.ts';
import { type IptablesVariant, iptablesTool, programName } from '../src/proxy/rules/index.ts';
import { execIn, recordingExec, useOwnLockFile } from '../test/lab/iptables/fixtures.ts';
import { walkPacket } from '../test/lab/iptables/packet-walk.ts';
import { sampleNode, samplePlan } from '../test/lab/iptables/sample-plan.ts';
import { createNamespace } from '../test/lab/namespace.ts';
import { samplePorts, sampleService } from './cluster.ts';
import { type Figure, report } from './report.ts';
import { upstreamLayout } from './upstream-layout.ts';

const ENDPOINTS = 10;
/** iptables-nft needs minutes for upstream's layout at 5,000 Services (its cost grows with the square of the chains). */
const SIZES: Readonly<Record<IptablesVariant, number>> = { legacy: 5000, nft: 1000 };

const UPSTREAM_TIMEOUT_MS = 900_000;

/** Loading N Services of ten endpoints, our layout against upstream's, by the same iptables-restore in one run. */
export async function benchIptables(): Promise<void> {
  useOwnLockFile();
  for (const variant of ['legacy', 'nft'] as const) {
    await compareLoads(variant, SIZES[variant]);
  }
}

/** As many Services in the nft variant as in the legacy one: upstream's layout alone takes minutes. */
export async function benchIptablesNft5000(): Promise<void> {
  useOwnLockFile();
  await compareLoads('nft', 5000);
}

async function compareLoads(variant: IptablesVariant, services: number): Promise<void> {
  report(`iptables-${variant}, ${services} x ${ENDPOINTS}`, await measure(variant, services));
}

async function measure(variant: IptablesVariant, services: number): Promise<Figure[]> {
  const ports = samplePorts(services, ENDPOINTS);
  const plan = samplePlan('IPv4', sampleNode(), ports);

  const { exec, restores } = recordingExec(execIn(createNamespace(`ours-${variant}`)));
  const dataplane = new IptablesDataplane({ family: 'IPv4', variant, exec });
  const load = await timed(() => dataplane.resync(plan));

  const upstream = execIn(createNamespace(`upstream-${variant}`));
  const restore = programName('IPv4', variant, 'restore');
  const restoreUpstream = async (input: string) => {
    const { status, stderr } = await upstream(restore, ['--noflush'], { input, timeoutMs: UPSTREAM_TIMEOUT_MS });
    if (status !== 0) throw new Error(`${restore} of upstream's layout failed with status ${status}: ${stderr}`);
  };
  const upstreamInput = upstreamLayout(ports);
  const upstreamLoad = await timed(() => restoreUpstream(upstreamInput));

  const changed = sampleService(1, ENDPOINTS + 1);
  const change = await timed(() => dataplane.sync(plan, { upserted: [changed], removed: [] }));
  const partialInput = upstreamLayout([...ports.filter((port) => port.key !== changed.key), changed], changed);
  const upstreamChange = await timed(() => restoreUpstream(partialInput));

  const nat = await iptablesTool('IPv4', variant, exec).save('nat');
  const rules = new Map([...nat].map(([name, chain]) => [name, chain.rules]));
  const met = ports.slice(0, 300).map(({ clusterIp, port }) => {
    const destination = clusterIp.bytes.join('.');
    return walkPacket(rules, 'KUBE-SERVICES', { source: '10.1.1.1', destination, protocol: 'tcp', port }).met;
  });
  // The walk counts all endpoint rules of the Service; a real packet stops half-way on average.
  const ours = met.reduce((sum, count) => sum + count - ENDPOINTS / 2, 0) / met.length;
  const peerName = 'upstream’s layout';
  return [
    { what: 'full load', unit: 'ms', ours: load, peer: upstreamLoad, peerName },
    { what: 'one endpoint changed', unit: 'ms', ours: change, peer: upstreamChange, peerName },
    { what: 'its restore input', unit: 'bytes', ours: restores[1]!.length, peer: partialInput.length, peerName },
    // Upstream: half of KUBE-SERVICES, the rule for masquerading, half of the endpoints, two rules of an endpoint.
    {
      what: 'rules a first packet meets, computed',
      unit: '',
      ours,
      peer: services / 2 + 1 + ENDPOINTS / 2 + 2,
      peerName,
    },
  ];
}

async function timed(what: () => Promise<unknown>): Promise<number> {
  const started = performance.now();
  await what();
  return performance.now() - started;
}
