import type { ServicePortPlan } from '../src/proxy/index.ts';
import { IptablesDataplane } from '../src/proxy/iptables/index.ts';
import { type IptablesVariant, iptablesTool, programName } from '../src/proxy/rules/index.ts';
import { walkPacket } from '../test/fakes/packet-walk.ts';
import { execIn, recordingExec, useOwnLockFile } from '../test/lab/iptables/fixtures.ts';
import { createNamespace, type TestNamespace } from '../test/lab/namespace.ts';
import { sampleNode, samplePlan } from '../test/samples/sample-plan.ts';
import { samplePorts, sampleService } from './cluster.ts';
import { type Figure, HOLDS_THE_LINE, inTurns, oursAtMost, ratioAtMost, report, type Target } from './report/index.ts';
import { upstreamLayout } from './upstream-layout.ts';

const ENDPOINTS = 10;
/** iptables-nft needs minutes for upstream's layout at 5,000 Services (its cost grows with the square of the chains). */
const SIZES: Readonly<Record<IptablesVariant, number>> = { legacy: 5000, nft: 1000 };

const UPSTREAM_TIMEOUT_MS = 900_000;
const TURNS = 3;
/** Of each turn. */
const CHANGES = 3;

const TARGETS: Readonly<Record<IptablesVariant, { readonly load: Target; readonly change: Target }>> = {
  legacy: { load: ratioAtMost(0.45, 'goal 0.35'), change: ratioAtMost(1, HOLDS_THE_LINE) },
  nft: { load: ratioAtMost(0.5, HOLDS_THE_LINE), change: ratioAtMost(1, HOLDS_THE_LINE) },
};

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
  await compareLoads('nft', 5000, 1);
}

async function compareLoads(variant: IptablesVariant, services: number, turns = TURNS): Promise<void> {
  report(`iptables-${variant}, ${services} x ${ENDPOINTS}`, await measure(variant, services, turns));
}

/** Milliseconds of one side, turn by turn. */
interface Times {
  readonly load: number[];
  readonly change: number[];
}

/** Both sides load into a namespace of their own, anew at each turn, and change one endpoint some times there. */
async function measure(variant: IptablesVariant, services: number, turns: number): Promise<Figure[]> {
  const ports = samplePorts(services, ENDPOINTS);
  const [ours, theirs]: [Times, Times] = [
    { load: [], change: [] },
    { load: [], change: [] },
  ];
  let own: Side | undefined;
  let peer: Side | undefined;
  for (let turn = 0; turn < turns; turn++) {
    own = await measureOurs(variant, ports, ours);
    peer = await measureUpstream(variant, ports, theirs);
    if (turn + 1 < turns) for (const { namespace } of [own, peer]) namespace.remove();
  }
  const targets = TARGETS[variant];
  const peerName = 'upstream’s layout';
  return [
    {
      what: 'full load',
      unit: 'ms',
      ...inTurns(ours.load, theirs.load),
      peerName,
      target: targets.load,
      headline: `All of ${services} Services, iptables-${variant}`,
    },
    {
      what: 'one endpoint changed',
      unit: 'ms',
      ...inTurns(ours.change, theirs.change),
      peerName,
      target: targets.change,
      headline: `One endpoint changes among ${services} Services, iptables-${variant}`,
    },
    {
      what: 'its restore input',
      unit: 'bytes',
      ours: own!.changeBytes,
      peer: peer!.changeBytes,
      peerName,
      target: oursAtMost(4096),
    },
    {
      what: 'rules a first packet meets, computed',
      unit: '',
      ours: await rulesMet(variant, ports, own!.namespace),
      // Upstream: half of KUBE-SERVICES, the rule for masquerading, half of the endpoints, two rules of an endpoint.

      peer: services / 2 + 1 + ENDPOINTS / 2 + 2,
      peerName,
      target: oursAtMost(24, HOLDS_THE_LINE),
    },
  ];
}

/** What a turn of one side leaves to look at. */
interface Side {
  readonly namespace: TestNamespace;
  /** Size of what iptables-restore is given for one changed endpoint. */
  readonly changeBytes: number;
}

async function measureOurs(variant: IptablesVariant, ports: readonly ServicePortPlan[], times: Times): Promise<Side> {
  const namespace = createNamespace(`ours-${variant}`);
  const { exec, restores } = recordingExec(execIn(namespace));
  const plan = samplePlan('IPv4', sampleNode(), [...ports]);
  const dataplane = new IptablesDataplane({ family: 'IPv4', variant, exec });
  times.load.push(await timed(() => dataplane.resync(plan)));
  for (let change = 1; change <= CHANGES; change++) {
    const upserted = [changedService(change)];
    times.change.push(await timed(() => dataplane.sync(plan, { upserted, removed: [] })));
  }
  return { namespace, changeBytes: restores.at(-1)!.length };
}

async function measureUpstream(
  variant: IptablesVariant,
  ports: readonly ServicePortPlan[],
  times: Times,
): Promise<Side> {
  const namespace = createNamespace(`upstream-${variant}`);
  const program = programName('IPv4', variant, 'restore');
  const restore = async (input: string) => {
    const { status, stderr } = await execIn(namespace)(program, ['--noflush'], {
      input,
      timeoutMs: UPSTREAM_TIMEOUT_MS,
    });
    if (status !== 0) throw new Error(`${program} of upstream's layout failed with status ${status}: ${stderr}`);
  };
  const full = upstreamLayout(ports);
  times.load.push(await timed(() => restore(full)));
  let changeBytes = 0;
  for (let change = 1; change <= CHANGES; change++) {
    const changed = changedService(change);
    const input = upstreamLayout([...ports.filter((port) => port.key !== changed.key), changed], changed);
    times.change.push(await timed(() => restore(input)));
    changeBytes = input.length;
  }
  return { namespace, changeBytes };
}

/** Service number 1 with so many endpoints more than it has. */
function changedService(more: number): ServicePortPlan {
  return sampleService(1, ENDPOINTS + more);
}

/** Mean over some Services. */
async function rulesMet(
  variant: IptablesVariant,
  ports: readonly ServicePortPlan[],
  namespace: TestNamespace,
): Promise<number> {
  const nat = await iptablesTool('IPv4', variant, execIn(namespace)).save('nat');
  const rules = new Map([...nat].map(([name, chain]) => [name, chain.rules]));
  const met = ports.slice(0, 300).map(({ clusterIp, port }) => {
    const destination = clusterIp.bytes.join('.');
    return walkPacket(rules, 'KUBE-SERVICES', { source: '10.1.1.1', destination, protocol: 'tcp', port }).met;
  });
  // The walk counts all endpoint rules of the Service; a real packet stops half-way on average.
  return met.reduce((sum, count) => sum + count - ENDPOINTS / 2, 0) / met.length;
}

async function timed(what: () => Promise<unknown>): Promise<number> {
  const started = performance.now();
  await what();
  return performance.now() - started;
}
