import { afterAll, expect, it } from 'vitest';
import { removeAll } from '../lab.ts';
import { patient } from '../patience.ts';
import { createCluster } from '../routes/cluster.ts';
import { preflight } from './node.ts';

afterAll(removeAll);

it(
  'of links and routes that an agent has made none is another network’s',
  async () => {
    const cluster = await createCluster();
    await cluster.start('--routes', 'auto');
    const manifests = ['--manifests', cluster.objects.agentOptions.manifests!];
    const { report } = await preflight(cluster.nodes[0].namespace, '--cni', '--routes', 'auto', ...manifests);
    // The pods of the lab are as large as they can be.
    const ofLinks = report.findings.filter(({ check }) => check.startsWith('links.') && check !== 'links.mtu');
    expect(ofLinks.filter(({ state }) => state !== 'ok')).toEqual([]);
    expect(ofLinks.length).toBeGreaterThan(4);
    await cluster.stop();
  },
  patient(60_000),
);
