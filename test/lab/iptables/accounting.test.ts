import { afterAll, expect, it } from 'vitest';
import { formatIp } from '../../../src/core/index.ts';
import { ensureAccounting, getAccounting } from '../../../src/netlink/conntrack/index.ts';
import { Netlink } from '../../../src/netlink/index.ts';
import { Nftables } from '../../../src/netlink/nftables/index.ts';
import { NETLINK_NETFILTER } from '../../../src/netlink/uapi/index.ts';
import { LOCALHOST_STAND_INS } from '../../../src/proxy/index.ts';
import { COUNTERS, IptablesDataplane } from '../../../src/proxy/iptables/index.ts';
import { LocalhostRules, nodePortOf } from '../../../src/proxy/localhost/index.ts';
import type { IptablesVariant } from '../../../src/proxy/rules/index.ts';
import { inNetns } from '../../../src/sys/index.ts';
import { sampleNode, samplePlan, samplePort } from '../../samples/sample-plan.ts';
import { createNamespace, removeAll } from '../namespace.ts';
import { execIn, saved, useOwnLockFile } from './fixtures.ts';

useOwnLockFile();
afterAll(removeAll);

it.each(['legacy', 'nft'] as IptablesVariant[])(
  '%s: rules count into named counters, which verify as written',
  async (variant) => {
    const namespace = createNamespace(`accounting-${variant}`);
    const exec = execIn(namespace);
    const netlink = inNetns(namespace.path, () => Netlink.open(NETLINK_NETFILTER));
    expect(getAccounting(netlink, COUNTERS.invalidDropped)).toBeUndefined();
    for (const name of [...Object.values(COUNTERS), ...Object.values(COUNTERS)]) ensureAccounting(netlink, name);
    expect(getAccounting(netlink, COUNTERS.loopbackAccepted)).toEqual({ packets: 0n, bytes: 0n });

    const dataplane = new IptablesDataplane({ family: 'IPv4', variant, exec, accounting: true });
    const web = samplePort({ name: 'a/web', clusterIp: '10.96.0.10', nodePort: 30080, remote: ['10.244.1.5:8080'] });
    await dataplane.resync(samplePlan('IPv4', sampleNode({ loopbackNodePorts: true }), [web]));
    expect(await dataplane.verify()).toEqual([]);
    const rules = Object.values(await saved(exec, 'IPv4', variant)).flat();
    for (const name of Object.values(COUNTERS)) expect(rules.join('\n')).toContain(`-m nfacct --nfacct-name ${name}`);

    // A connection that nobody answers, from loopback to a NodePort of loopback: its first packet counts once.
    namespace.run('ip', 'link', 'set', 'lo', 'up');
    namespace.run('ip', 'link', 'add', 'up0', 'type', 'veth', 'peer', 'name', 'up1');
    for (const link of ['up0', 'up1']) namespace.run('ip', 'link', 'set', link, 'up');
    namespace.run('ip', 'address', 'add', '10.244.0.1/16', 'dev', 'up0');
    const standIn = formatIp(LOCALHOST_STAND_INS.IPv4);
    const localhost = new LocalhostRules('IPv4', {
      open: () => inNetns(namespace.path, () => Nftables.open()),
      standIn: {
        isThere: () => true,
        add: () => namespace.run('ip', 'route', 'add', 'local', standIn, 'dev', 'lo', 'table', 'local'),
        remove: () => {},
      },
    });
    await localhost.makeEqual(new Set([nodePortOf(web)]));
    localhost.close();
    await exec('bash', ['-c', 'timeout 2 bash -c "</dev/tcp/127.0.0.1/30080"']);
    await expect.poll(() => getAccounting(netlink, COUNTERS.loopbackAccepted)?.packets).toBe(1n);
    netlink.close();
  },
);
