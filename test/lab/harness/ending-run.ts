// Run as a process of its own by clean-up.test.ts: makes a lab with everything that could be left behind, tells of it on
// stdout, and ends in the way its argument says.
import { spawn } from 'node:child_process';
import { createLab } from '../lab.ts';

const lab = createLab();
const host = lab.addClient('host');
await host.serve({ port: 80 });
const child = spawn('ip', ['netns', 'exec', host.namespace.name, 'sleep', '1000'], { detached: true, stdio: 'ignore' });
child.unref();

// The child counts as inside once `ip` has become `sleep`.
while (host.namespace.run('ps', '-o', 'comm=', '-p', String(child.pid)).trim() !== 'sleep');
process.stdout.write(
  `${JSON.stringify({ namespaces: [lab.wire.namespace.name, host.namespace.name], folder: lab.folder, pid: child.pid })}\n`,
);

const endings: Record<string, () => void> = {
  'an uncaught exception': () => {
    throw new Error('on purpose');
  },
  'an unhandled rejection': () => void Promise.reject(new Error('on purpose')),
  'process.exit': () => process.exit(0),
  'a signal': () => setInterval(() => {}, 1000),
};
setTimeout(endings[process.argv[2] ?? '']!, 10);
