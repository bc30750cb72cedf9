import { existsSync, rmSync, writeFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { syncs, withApiCluster, residentMiB } from '../bench/api-cluster.ts';
import { removeAll } from '../test/lab/lab.ts';
const MODES: Record<string, string[]> = {
  nftables: ['--proxy-mode', 'nftables'],
  'iptables-nft': ['--proxy-mode', 'iptables', '--iptables-variant', 'nft'],
  'iptables-legacy': ['--proxy-mode', 'iptables', '--iptables-variant', 'legacy'],
};
const [mode, count = '10000'] = process.argv.slice(2);
const state = '/tmp/wall-hold';
async function main() {
  await withApiCluster(Number(count), async ({ node, kubeconfig }) => {
    node.addPod('client');
    const agent = await node.startAgent({ flags: ['--kubeconfig', kubeconfig, '--iptables-sync-period', '1h', ...MODES[mode!]!], until: 'live' });
    while (syncs(agent, true).length === 0) await delay(500);
    await delay(4000);
    writeFileSync(state, `${agent.pid}\n`);
    console.log('up', agent.pid, residentMiB(agent));
    while (existsSync(state)) await delay(500);
    await agent.stop();
  });
}
main().finally(removeAll).catch((e) => { console.error(e); process.exitCode = 1; });
