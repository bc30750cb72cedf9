import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { afterAll, describe, expect, it } from 'vitest';
import { IptablesDataplane } from '../../../src/proxy/iptables/index.ts';
import type { IptablesVariant } from '../../../src/proxy/rules/index.ts';
import { sampleNode, samplePlan, samplePort } from '../../samples/sample-plan.ts';
import { createNamespace, removeAll } from '../namespace.ts';
import { execIn, useOwnLockFile } from './fixtures.ts';

// Real packets through the trees, inside one namespace where everything is loopback. What Services do between nodes,
// pods and clients is tested with the dataplanes in common.

useOwnLockFile();
afterAll(removeAll);

const NODE_IP = '192.0.2.1';

describe.each(['legacy', 'nft'] as IptablesVariant[])('%s', (variant) => {
  it('leads packets down the trees and back to what follows them', async () => {
    const namespace = createNamespace(`packets-${variant}`);
    const exec = execIn(namespace);
    namespace.run('ip', 'link', 'set', 'lo', 'up');
    namespace.run('ip', 'address', 'add', `${NODE_IP}/32`, 'dev', 'lo');
    namespace.run('ip', 'route', 'add', 'default', 'dev', 'lo', 'src', NODE_IP);

    // Many Services and NodePorts: trees of several levels. Each has its own port behind it.
    const ports = Array.from({ length: 400 }, (_, n) =>
      samplePort({
        name: `many/service-${n}`,
        clusterIp: `10.96.${n % 7}.${n % 256}`,
        port: 1000 + n,
        nodePort: 30000 + n,
        ...(n % 100 === 50 ? {} : { local: [`${NODE_IP}:${20000 + n}`] }),
      }),
    );
    await new IptablesDataplane({ family: 'IPv4', variant, exec }).resync(samplePlan('IPv4', sampleNode(), ports));

    const serve = `
      for (const n of [0, 123, 399]) require('node:net').createServer((s) => s.end(String(n))).listen(20000 + n, '${NODE_IP}');
      setTimeout(() => console.log('ready'), 0);`;
    const server = spawn('nsenter', [`--net=${namespace.path}`, process.execPath, '-e', serve]);
    await once(server.stdout, 'data');
    try {
      const ask = async (address: string, port: number) => {
        const { stdout } = await exec('timeout', ['2', 'bash', '-c', `cat < /dev/tcp/${address}/${port}`]);
        return stdout;
      };
      for (const n of [0, 123, 399]) {
        expect(await ask(`10.96.${n % 7}.${n % 256}`, 1000 + n)).toBe(String(n));
        expect(await ask(NODE_IP, 30000 + n)).toBe(String(n));
      }
      // Nothing routes an ICMP error back here when everything is loopback: the counters tell who refused.
      await ask('10.96.1.50', 1050);
      await ask(NODE_IP, 30050);
      const counted = namespace.run(`iptables-${variant}-save`, '-c', '-t', 'filter').split('\n');
      for (const match of ['--dport 1050 ', '--dport 30050 ']) {
        expect(counted.find((line) => line.includes(match))).toMatch(/^\[[1-9]\d*:.* -j REJECT/);
      }
    } finally {
      server.kill('SIGKILL');
    }
  });
});
