import { spawn } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { createLab, removeAll } from '../lab.ts';
import { own } from '../namespace.ts';
import { patient } from '../patience.ts';
import { builtProgram } from '../programs.ts';

// Whoever opens a FIFO waits for a writer, and hears no signal meanwhile.

afterAll(removeAll);

it.each(['--config', '--kubeconfig', '--cni-conflist'])('a FIFO as %s ends the start and is named', async (flag) => {
  const lab = createLab();
  const node = lab.addNode({ name: 'node-1' });
  const [fifo, manifests] = [join(lab.folder, 'fifo'), join(lab.folder, 'manifests')];
  mkdirSync(manifests);
  node.namespace.run('mkfifo', fifo);
  const others = flag === '--kubeconfig' ? [] : ['--manifests', manifests];
  const cni = flag === '--cni-conflist' ? ['--cni', '--cni-socket', join(lab.folder, 'run', 'cni.sock')] : [];
  const agent = ['netns', 'exec', node.namespace.name, builtProgram('nodeplane'), 'agent'];
  const child = spawn('ip', [...agent, ...others, ...cni, flag, fifo, '--hostname-override', 'node-1'], {
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  own(() => void child.kill('SIGKILL'));
  let said = '';
  child.stderr.on('data', (chunk) => {
    said += chunk;
  });
  let status: number | null | undefined;
  child.on('exit', (code) => {
    status = code;
  });
  await expect.poll(() => status, { timeout: patient(10_000) }).toBe(1);
  expect(said).toMatch(/"[^"]*fifo\\?".*it is a FIFO, and a file is needed/);
});

it.each(['nodeplane', 'kube-proxy'] as const)(
  '%s goes on when its file is changed into one that cannot be used',
  async (program) => {
    const lab = createLab();
    const node = lab.addNode({ name: 'node-1' });
    const [file, manifests] = [join(lab.folder, 'config.conf'), join(lab.folder, 'manifests')];
    mkdirSync(manifests);
    const text = (mode: string) =>
      `apiVersion: kubeproxy.config.k8s.io/v1alpha1\nkind: KubeProxyConfiguration\nmode: ${mode}\n`;
    writeFileSync(file, text('nftables'));
    const spread = program === 'kube-proxy' ? [] : ['--config-change-spread', '0s'];
    const given = program === 'kube-proxy' ? ['--master', 'http://127.0.0.1:1'] : ['--manifests', manifests];
    const agent = await node.startAgent({ program, until: 'live', flags: ['--config', file, ...given, ...spread] });
    const told = () => agent.logs().filter(({ msg }) => String(msg).includes('going on with the one before'));
    for (const wrong of [text('nftable'), 'half: [']) {
      const before = told().length;
      writeFileSync(file, wrong);
      await expect.poll(() => told().length, { timeout: patient(10_000) }).toBe(before + 1);
    }
    expect(told()[0]).toMatchObject({ level: 'error', reason: expect.stringContaining('nftable') });
    writeFileSync(file, text('iptables'));
    expect(await agent.ended).toBe(1);
  },
);
