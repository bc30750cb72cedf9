import { afterAll, describe, expect, it } from 'vitest';
import { IptablesDataplane } from '../../../src/proxy/iptables/index.ts';
import { formatChance, programName } from '../../../src/proxy/rules/index.ts';
import { completePlan } from '../../samples/complete-plan.ts';
import { createNamespace, removeAll } from '../namespace.ts';
import { CASES, execIn, saved, useOwnLockFile } from './fixtures.ts';

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

  // The chance of the first of 4,096 endpoints lies in the middle between two that have 11 digits.
  it('prints the chances of up to 5,000 endpoints as iptables does', async () => {
    const rules = Array.from(
      { length: 4999 },
      (_, i) => `-m statistic --mode random --probability ${formatChance(Math.round(2 ** 31 / (i + 2)))} -j ACCEPT`,
    );
    const input = ['*filter', ':CHANCES - [0:0]', ...rules.map((rule) => `-A CHANCES ${rule}`), 'COMMIT', ''];
    await exec(programName(family, variant, 'restore'), ['--noflush'], { input: input.join('\n') });
    expect((await saved(exec, family, variant))['filter CHANCES']).toEqual(rules);
  });
});
