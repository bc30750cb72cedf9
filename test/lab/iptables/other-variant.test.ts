import { readFileSync } from 'node:fs';
import { afterAll, describe, expect, it } from 'vitest';
import { IptablesDataplane } from '../../../src/proxy/iptables/index.ts';
import { type IptablesVariant, iptablesTool } from '../../../src/proxy/rules/index.ts';
import type { Exec } from '../../../src/sys/index.ts';
import { sampleNode, samplePlan, samplePort } from '../../samples/sample-plan.ts';
import { createNamespace, removeAll } from '../namespace.ts';
import { execIn, saved, useOwnLockFile } from './fixtures.ts';

useOwnLockFile();
afterAll(removeAll);

const KUBE_PROXY = readFileSync(new URL('../../golden/iptables/kube-proxy.save', import.meta.url), 'utf8');
const VIP = '10.96.0.50';
const plan = samplePlan('IPv4', sampleNode(), [
  samplePort({ name: 'shop/web:http', clusterIp: VIP, nodePort: 30080, local: ['10.244.1.5:8080'] }),
]);

describe.each([
  ['legacy', 'nft'],
  ['nft', 'legacy'],
] as [IptablesVariant, IptablesVariant][])('a kube-proxy’s rules in %s, ours in %s', (theirs, ours) => {
  async function setup() {
    const inner = execIn(createNamespace(`other-${theirs}`));
    const served: boolean[] = [];
    const leadsToWeb = async (variant: IptablesVariant) => {
      const nat = await iptablesTool('IPv4', variant, inner).save('nat');
      const jumps = nat.get('PREROUTING')?.rules.some((rule) => rule.includes('-j KUBE-SERVICES'));
      return Boolean(jumps && nat.get('KUBE-SERVICES')?.rules.some((rule) => rule.includes(VIP)));
    };
    // After every change of the kernel: does the Service's address still lead somewhere?
    const exec: Exec = async (program, args, options) => {
      const result = await inner(program, args, options);
      if (program.endsWith('-restore')) served.push((await leadsToWeb(theirs)) || (await leadsToWeb(ours)));
      return result;
    };
    await inner(`iptables-${theirs}-restore`, [], { input: KUBE_PROXY });
    const told: unknown[] = [];
    const otherVariant = {
      cleaned: (variant: IptablesVariant) => told.push(`cleaned ${variant}`),
      failed: (variant: IptablesVariant, error: unknown) => told.push(`failed ${variant}`, error),
    };
    const state = () => saved(inner, 'IPv4', theirs);
    const make = (run: Exec, options = { otherVariant }) =>
      new IptablesDataplane({ family: 'IPv4', variant: ours, exec: run, ...options });
    return { exec, served, told, make, state };
  }

  it('are removed once ours stand, with no moment without rules', async () => {
    const { exec, served, told, make, state } = await setup();
    const dataplane = make(exec);
    await dataplane.resync(plan);
    expect(served).toEqual([true, true]);
    expect(told).toEqual([`cleaned ${theirs}`]);
    const left = Object.keys(await state()).filter((name) => / KUBE-(?!KUBELET)/.test(name));
    expect(left).toEqual(['filter KUBE-FIREWALL']);
    expect((await state())['filter SITE-FIREWALL']).toHaveLength(1);
    await dataplane.resync(plan);
    expect(served).toHaveLength(2);
    expect(told).toHaveLength(1);
    expect(await dataplane.verify()).toEqual([]);
  });

  it('stay while ours cannot be written, and are removed at the first resync that succeeds', async () => {
    const { exec, told, make, state } = await setup();
    const before = await state();
    let broken: IptablesVariant | undefined = ours;
    const dataplane = make(async (program, args, options) =>
      program === `iptables-${broken}-restore`
        ? { status: 4, stdout: '', stderr: 'Another app is currently holding the xtables lock' }
        : exec(program, args, options),
    );
    await expect(dataplane.resync(plan)).rejects.toThrow('xtables lock');
    expect(await state()).toEqual(before);
    expect(told).toEqual([]);
    broken = theirs;
    await dataplane.resync(plan);
    expect(told).toEqual([`failed ${theirs}`, expect.objectContaining({ code: 'ERR_IPTABLES_LOCK' })]);
    broken = undefined;
    await dataplane.resync(plan);
    expect(told.at(-1)).toBe(`cleaned ${theirs}`);
  });
});
