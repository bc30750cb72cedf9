import { performance } from 'node:perf_hooks';
import { IptablesDataplane } from '../src/proxy/iptables/index.ts';
import { type IptablesVariant, iptablesTool, programName } from '../src/proxy/rules/index.ts';
import { execIn, recordingExec, useOwnLockFile } from '../test/lab/iptables/fixtures.ts';
import { walkPacket } from '../test/lab/iptables/packet-walk.ts';
import { sampleNode, samplePlan, samplePort } from '../test/lab/iptables/sample-plan.ts';
import { createNamespace, removeAll } from '../test/lab/namespace.ts';

// How long the iptables dataplane takes for N Services of M endpoints, against iptables-restore loading the same rules
// from a file, and how many rules a first packet meets. Needs root.
//   npx esbuild bench/iptables-load.ts --bundle --platform=node --format=esm --packages=external --outfile=/tmp/load.mjs
//   node /tmp/load.mjs [services] [endpoints]

const [services = 5000, endpoints = 10] = process.argv.slice(2).map(Number);

const address = (net: number, n: number) => `10.${net + (n >> 16)}.${(n >> 8) & 255}.${n & 255}`;
const service = (n: number, count: number) =>
  samplePort({
    name: `bench/service-${n}:http`,
    // Spread over the /12 as a cluster allocates them: at random.
    clusterIp: address(96, Math.imul(n + 1, 0x9e3779b1) >>> 12),
    remote: Array.from({ length: count }, (_, i) => `${address(200, n * 10 + i)}:8080`),
  });

async function timed<T>(what: () => Promise<T>): Promise<[milliseconds: number, result: T]> {
  const started = performance.now();
  const result = await what();
  return [Math.round(performance.now() - started), result];
}

async function measure(variant: IptablesVariant) {
  const recorder = recordingExec(execIn(createNamespace(`bench-${variant}`)));
  const { exec, restores } = recorder;
  const plan = samplePlan(
    'IPv4',
    sampleNode(),
    Array.from({ length: services }, (_, n) => service(n, endpoints)),
  );
  const dataplane = new IptablesDataplane({ family: 'IPv4', variant, exec });
  const [loadMs, commit] = await timed(() => dataplane.resync(plan));

  const plain = execIn(createNamespace(`plain-${variant}`));
  const input = restores[0]!;
  const [plainMs] = await timed(() => plain(programName('IPv4', variant, 'restore'), ['--noflush'], { input }));

  const changed = service(1, endpoints + 1);
  const [changeMs] = await timed(() => dataplane.sync(plan, { upserted: [changed], removed: [] }));
  const [restartMs] = await timed(() => new IptablesDataplane({ family: 'IPv4', variant, exec }).resync(plan));

  const nat = await iptablesTool('IPv4', variant, exec).save('nat');
  const rules = new Map([...nat].map(([name, chain]) => [name, chain.rules]));
  const met = [...plan.ports.values()].slice(0, 300).map(({ clusterIp, port }) => {
    const destination = clusterIp.bytes.join('.');
    return walkPacket(rules, 'KUBE-SERVICES', { source: '10.1.1.1', destination, protocol: 'tcp', port }).met;
  });
  return {
    ...{ variant, services, endpoints, rules: commit.objects.nat!.total, chains: nat.size },
    ...{ loadMs, plainRestoreMs: plainMs, ratio: Number((loadMs / plainMs).toFixed(2)) },
    ...{ changeOneEndpointMs: changeMs, changeBytes: restores[1]!.length, restartMs },
    // The endpoints of the Service itself count too: on average a packet meets half of them.
    rulesMet: Number((met.reduce((sum, each) => sum + each - endpoints / 2, 0) / met.length).toFixed(1)),
  };
}

useOwnLockFile();
try {
  const results = [await measure('legacy'), await measure('nft')];
  console.table(results);
  console.log(JSON.stringify({ benchmark: 'iptables-load', results }));
} finally {
  removeAll();
}
