import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { removeAll } from '../lab.ts';
import { patient } from '../patience.ts';
import { builtProgram } from '../programs.ts';
import { createStatusNode, type StatusNode } from './node.ts';

const LONG_MS = patient(300_000);
const VIP = '10.96.0.70';

let lab: StatusNode;

beforeAll(async () => {
  lab = await createStatusNode();
  const metadata = { name: 'sticky', namespace: 'shop' };
  const [service, slice] = [
    {
      apiVersion: 'v1',
      kind: 'Service',
      metadata,
      spec: { clusterIP: VIP, sessionAffinity: 'ClientIP', ports: [{ name: 'http', port: 80 }] },
    },
    {
      apiVersion: 'discovery.k8s.io/v1',
      kind: 'EndpointSlice',
      metadata: { ...metadata, labels: { 'kubernetes.io/service-name': 'sticky' } },
      addressType: 'IPv4',
      ports: [{ name: 'http', port: 8080 }],
      endpoints: [{ addresses: [lab.pods[1]!.ip()], nodeName: 'node-1', conditions: { ready: true } }],
    },
  ];
  writeFileSync(join(lab.manifests, 'sticky.json'), `${JSON.stringify(service)}`);
  writeFileSync(join(lab.manifests, 'sticky-slice.json'), `${JSON.stringify(slice)}`);
}, LONG_MS);
afterAll(removeAll);

it.each(['nftables', 'iptables'])(
  'nodeplane services tells whom a Service remembers, and for how long (mode %s)',
  async (mode) => {
    const [client, server] = lab.pods;
    const agent = await lab.start('--proxy-mode', mode);
    try {
      const services = (...args: string[]) => {
        const command = ['netns', 'exec', lab.node.namespace.name, builtProgram('nodeplane'), 'services', ...args];
        return spawnSync('ip', command, { encoding: 'utf8' });
      };
      expect(services('shop/sticky').stdout).toContain('  0 clients remembered\n');
      expect((await client!.connect({ ip: VIP, port: 80 })).kind).toBe('answered');
      const { stdout } = services('shop/sticky');
      const [, remaining] = new RegExp(
        `  1 client remembered\\n +${client!.ip()} +-> ${server!.ip()}:8080 +for (.*) more\\n`,
      ).exec(stdout) ?? [undefined, stdout];
      // 10,800 s, of which some may have passed.
      expect(remaining).toMatch(/^[23] h$/);
      const { affinity } = JSON.parse(services('shop/sticky', '-o', 'json').stdout);
      expect(affinity).toMatchObject([
        { total: 1, clients: [{ client: client!.ip(), endpoint: `${server!.ip()}:8080` }] },
      ]);
      expect(affinity[0].clients[0].remainingSeconds).toBeGreaterThan(10_000);
      expect(affinity[0].clients[0].remainingSeconds).toBeLessThanOrEqual(10_800);
    } finally {
      await agent.stop();
    }
  },
  LONG_MS,
);
