// Run as a process of its own by clean-up.test.ts: starts a containerd with a running pod, tells of it on stdout, and ends
// in the way its argument says.
import { createLab } from '../lab/lab.ts';
import { startContainerd } from './containerd.ts';
import { serveStandAlone, standAloneNetwork } from './plugins.ts';
import { runPod } from './pod.ts';

async function run(ending: string): Promise<void> {
  const lab = createLab();
  const node = lab.addNode({ name: 'node-1' });
  const containerd = await startContainerd(node);
  await serveStandAlone(containerd, standAloneNetwork(node));
  const pod = await runPod(containerd, 'web');
  await pod.startContainer('sleep', ['/bin/busybox', 'sleep', '1000000']);
  const { folder, cgroup } = containerd.enclosure;
  process.stdout.write(`${JSON.stringify({ folder, cgroup, namespace: node.namespace.path })}\n`);
  if (ending === 'process.exit') process.exit(0);
  setInterval(() => {}, 1000);
}

void run(process.argv[2] ?? '');
