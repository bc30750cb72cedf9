import { spawn } from 'node:child_process';
import { afterEach, describe, expect, it } from 'vitest';
import { createNamespace, own, removeAll } from '../namespace.ts';
import { builtProgram } from '../programs.ts';
import { createNode, linksOf } from './fixture.ts';
import { callPlugin } from './plugin.ts';

afterEach(removeAll);

describe.each(['nodeplane-cni', 'nodeplane-cni-shim'])('%s', (program) => {
  it('refuses 10 MiB of configuration', async () => {
    const node = createNode();
    const pod = createNamespace('pod');
    const config = { ...node.config(), plugins: 'x'.repeat(10 << 20) };
    const call = { containerId: pod.name, netns: pod, program: builtProgram(program), config };
    for (const command of ['ADD', 'DEL', 'CHECK', 'GC', 'STATUS']) {
      const { status, json } = await callPlugin(node.namespace, { command, ...call });
      expect({ status, json }).toMatchObject({ status: 1, json: { code: 5 } });
    }
    expect(linksOf(node.namespace).map(({ ifname }) => ifname)).toEqual(['lo']);
  });

  it.each(['', '{"cniVersion": "1.1.0"'])(
    'does not wait for ever for the end of standard input, after %j',
    async (begin) => {
      const node = createNode();
      const env = {
        PATH: process.env.PATH,
        CNI_COMMAND: 'ADD',
        CNI_CONTAINERID: 'c',
        CNI_IFNAME: 'eth0',
        CNI_NETNS: '/x',
        CNI_PATH: '/',
      };
      const child = spawn('ip', ['netns', 'exec', node.namespace.name, builtProgram(program)], { env, stdio: 'pipe' });
      own(() => void child.kill('SIGKILL'));
      child.stdin.write(begin);
      let stdout = '';
      child.stdout.on('data', (chunk) => {
        stdout += chunk;
      });
      const status = await new Promise((resolve) => child.on('close', resolve));
      expect({ status, json: JSON.parse(stdout) }).toMatchObject({
        status: 1,
        json: {
          code: 5,
          msg: 'Cannot read the network configuration from standard input',
          details: expect.any(String),
        },
      });
    },
  );
});
