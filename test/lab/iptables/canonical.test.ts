import { afterAll, describe, expect, it } from 'vitest';
import { IptablesDataplane } from '../../../src/proxy/iptables/index.ts';
import { completePlan } from '../../samples/complete-plan.ts';
import { createNamespace, removeAll } from '../namespace.ts';
import { CASES, execIn, useOwnLockFile } from './fixtures.ts';

useOwnLockFile();
afterAll(removeAll);

describe.each(CASES)('%s %s', (family, variant) => {
  const exec = execIn(createNamespace(`canon-${variant}`));
  const dataplane = new IptablesDataplane({ family, variant, exec });

  it.each([
    ['pods by CIDR', completePlan(family)],
    ['pods by bridge', completePlan(family, { localDetector: { kind: 'bridge', interfaceName: 'cni0' } })],
    ['pods by interface prefix', completePlan(family, { localDetector: { kind: 'prefix', interfacePrefix: 'veth' } })],
    ['masquerade all, another mark', completePlan(family, { masqueradeAll: true, masqueradeMark: 0x80000000 })],
    ['NodePorts on loopback addresses', completePlan(family, { loopbackNodePorts: true })],
    ['one NodePort address', completePlan(family, { nodePortAddresses: [completePlan(family).node.nodeIp!] })],
  ])('gives back every rule as it was written: %s', async (_, plan) => {
    const { objects } = await dataplane.resync(plan);
    expect(objects.nat!.total).toBeGreaterThan(100);
    expect(await dataplane.verify()).toEqual([]);
    const again = await dataplane.resync(plan);
    expect(again.objects.nat!.written + again.objects.filter!.written).toBe(0);
  });
});
