import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { createLab, removeAll } from '../lab.ts';
import { apiServerObjects } from '../routes/cluster-objects.ts';

afterAll(removeAll);

it('a runtime is told of no network whose pods would have addresses of Services, also before those are read', async () => {
  const lab = createLab();
  const node = lab.addNode({ name: 'node-1' });
  const { api, agentOptions } = await apiServerObjects(lab);
  const addresses = [{ type: 'InternalIP', address: node.ip() }];
  const spec = { podCIDRs: ['10.244.1.0/24'] };
  api.apply({ apiVersion: 'v1', kind: 'Node', metadata: { name: 'node-1' }, spec, status: { addresses } });
  const cidrs = { cidrs: ['10.244.0.0/16'] };
  const services = { apiVersion: 'networking.k8s.io/v1', kind: 'ServiceCIDR', metadata: { name: 'kubernetes' } };
  api.apply({ ...services, spec: cidrs });
  const ready = async () => (await node.httpGet('http://127.0.0.1:10256/readyz')).body;
  // Which of the two is read first is a matter of luck.
  for (let start = 1; start <= 4; start++) {
    const path = (name: string) => join(lab.folder, `${start}`, name);
    const flags = [
      '--cni',
      '--cni-bin-dir',
      path('bin'),
      '--cni-conf-dir',
      path('net.d'),
      '--cni-data-dir',
      path('data'),
    ];
    flags.push('--cni-socket', path('run/cni.sock'), '--cni-spool-dir', path('spool'));
    const agent = await node.startAgent({ flags: [...agentOptions.flags!, ...flags] });
    await expect.poll(ready).toContain('10.244.1.0/24 of this node’s pods overlaps the Service range 10.244.0.0/16');
    expect(existsSync(path('net.d/10-nodeplane.conflist'))).toBe(false);
    await agent.stop();
  }
});
