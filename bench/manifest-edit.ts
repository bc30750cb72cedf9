import { execFileSync } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { makeService, makeSlice } from '../test/fakes/service-objects.ts';
import { createLab } from '../test/lab/lab.ts';
import { manifestOf, saveManifest } from '../test/samples/manifests.ts';
import { HOLDS_THE_LINE, inTurns, median, ratioAtMost, report } from './report/index.ts';

const EDITS = 15;
/** Longer than the default least interval between syncs, so that no edit waits for it. */
const PAUSE_MS = 1200;

/** From saving a manifest to the rules being in the kernel, against the bare iptables-restore such a change needs. */
export async function benchManifestEdit(): Promise<void> {
  const lab = createLab();
  const node = lab.addNode({ name: 'node-1' });
  const manifests = join(lab.folder, 'manifests');
  mkdirSync(manifests);
  const service = makeService('default/web', { clusterIP: '10.96.0.10' });
  const save = (endpoint: string) =>
    saveManifest(manifests, 'web.yaml', manifestOf(service, makeSlice('default/web', [endpoint])));
  save('10.244.1.2');
  const agent = await node.startAgent({ manifests, flags: ['--iptables-variant', 'nft'] });
  const syncs = () => agent.logs().filter((line) => line.msg === 'Synced' && line.family === 'IPv4' && !line.full);
  const ours: number[] = [];
  const peer: number[] = [];
  for (let edit = 0; edit < EDITS; edit++) {
    await delay(PAUSE_MS);
    const before = syncs().length;
    const savedAt = Date.now();
    save(`10.244.1.${10 + edit}`);
    while (syncs().length === before) await delay(20);
    ours.push(Date.parse(String(syncs().at(-1)!.time)) - savedAt);
    const startedAt = performance.now();
    execFileSync('ip', ['netns', 'exec', node.namespace.name, 'iptables-nft-restore', '--noflush'], {
      input: `*nat\n:BENCH - [0:0]\n-A BENCH -p tcp -j DNAT --to-destination 10.244.1.${10 + edit}:8080\nCOMMIT\n`,
    });
    peer.push(performance.now() - startedAt);
  }
  await agent.stop();
  report('manifest-edit', [
    {
      what: 'save to kernel, median',
      unit: 'ms',
      ...inTurns(ours, peer),
      peerName: 'iptables-restore alone',
      target: ratioAtMost(10, HOLDS_THE_LINE),
    },
    {
      what: 'save to kernel, worst',
      unit: 'ms',
      ours: Math.max(...ours),
      peer: median(peer),
      peerName: 'iptables-restore alone',
    },
  ]);
}
