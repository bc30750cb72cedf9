import { afterAll, describe, expect, it } from 'vitest';
import { IptablesDataplane } from '../../../src/proxy/iptables/index.ts';
import {
  detectVariant,
  iptablesTool,
  UnreadableTableError,
  whyIptablesMissing,
} from '../../../src/proxy/rules/index.ts';
import { sampleNode, samplePlan, samplePort } from '../../samples/sample-plan.ts';
import { createNamespace, removeAll } from '../namespace.ts';
import { execIn, recordingExec, useOwnLockFile } from './fixtures.ts';

useOwnLockFile();
afterAll(removeAll);

// Rules of nft in a table of iptables-nft. It leaves out such a table with status 0, or breaks off in the middle.
const RULES = [
  ['leaves out', 'limit rate over 5/second drop', 'is incompatible'],
  ['breaks off in', 'meta cpu 0 accept', 'Parsing nftables rule failed'],
] as const;

describe.each([
  ['IPv4', 'ip', '10.96.1'],
  ['IPv6', 'ip6', 'fd00:96::1'],
] as const)('%s', (family, nftFamily, prefix) => {
  const separator = family === 'IPv4' ? '.' : ':';
  const port = (n: number) => samplePort({ name: `shop/web-${n}`, clusterIp: `${prefix}${separator}${n}` });

  it.each(RULES)('a table that iptables-nft %s (%s) is told, and nothing is written twice', async (_, rule, said) => {
    const namespace = createNamespace(`unreadable-${family}`);
    const { exec, restores } = recordingExec(execIn(namespace));
    const dataplane = new IptablesDataplane({ family, variant: 'nft', exec });
    const plan = samplePlan(family, sampleNode(), [port(1)]);
    await dataplane.resync(plan);
    namespace.run('nft', `add rule ${nftFamily} nat PREROUTING ${rule}`);
    const before = namespace.run('nft', '-s', 'list', 'ruleset');
    restores.length = 0;
    const expected = {
      code: 'ERR_IPTABLES',
      message: expect.stringMatching(
        new RegExp(`^Table nat of iptables-nft \\(${family}\\) .*"nft list table ${nftFamily} nat" shows it.*${said}`),
      ),
    };
    await expect(dataplane.verify()).rejects.toMatchObject(expected);
    await expect(dataplane.resync(plan)).rejects.toMatchObject(expected);
    await expect(dataplane.resync(plan)).rejects.toBeInstanceOf(UnreadableTableError);
    expect(restores).toEqual([]);
    expect(namespace.run('nft', '-s', 'list', 'ruleset')).toBe(before);
    // Its program takes its rule away.
    namespace.run('nft', 'flush', 'chain', nftFamily, 'nat', 'PREROUTING');
    await dataplane.resync(plan);
    expect(await dataplane.verify()).toEqual([]);
  });

  it.each(RULES)('one that it %s (%s) keeps changes of Services from nothing', async (_, rule) => {
    const namespace = createNamespace(`goes-on-${family}`);
    const dataplane = new IptablesDataplane({ family, variant: 'nft', exec: execIn(namespace) });
    await dataplane.resync(samplePlan(family, sampleNode(), [port(1)]));
    namespace.run('nft', `add rule ${nftFamily} nat PREROUTING ${rule}`);
    const second = port(2);
    const plan = samplePlan(family, sampleNode(), [port(1), second]);
    await dataplane.sync(plan, { upserted: [second], removed: [] });
    expect(namespace.run('nft', 'list', 'ruleset')).toContain(`${prefix}${separator}2`);
  });

  it.each(RULES)('with a table that it %s (%s) the variant is found all the same', async (_, rule) => {
    const namespace = createNamespace(`variant-${family}`);
    const exec = execIn(namespace);
    namespace.run('nft', `add table ${nftFamily} mangle; add chain ${nftFamily} mangle KUBE-IPTABLES-HINT`);
    await iptablesTool(family, 'nft', exec).save('nat');
    const base = '{ type nat hook postrouting priority 100; }';
    const chain = `${nftFamily} nat POSTROUTING`;
    namespace.run('nft', `add table ${nftFamily} nat; add chain ${chain} ${base}; add rule ${chain} ${rule}`);
    expect(await detectVariant(family, exec)).toMatchObject({
      variant: 'nft',
      reason: expect.stringContaining('hint'),
    });
    expect(await detectVariant(family, exec, 'nft')).toMatchObject({ variant: 'nft' });
    expect(await whyIptablesMissing(family, 'nft', exec)).toBeUndefined();
  });
});
