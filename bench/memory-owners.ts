import { readdirSync, readFileSync } from 'node:fs';
import type { Agent } from '../test/lab/lab.ts';
import type { Figure } from './report/index.ts';

const MIB = 2 ** 20;

/** Whose the resident memory of an agent is. What the heap gave back to the kernel is not counted as its. */
export async function memoryOwners(agent: Agent): Promise<Figure[]> {
  const metrics = await agent.metrics();
  const gauge = (name: string) => Number(new RegExp(`^${name}(?:\\{[^}]*\\})? (\\S+)$`, 'm').exec(metrics)![1]) / MIB;
  const [heap, external] = [gauge('nodejs_heap_size_total_bytes'), gauge('nodejs_external_memory_bytes')];
  const { files, others } = mappedMiB(agent.pid);
  const threads = readdirSync(`/proc/${agent.pid}/task`).length;
  const figure = (what: string, ours: number): Figure => ({ what, unit: 'MiB', ours, peer: undefined, peerName: '' });
  return [
    figure('V8’s heap', heap),
    figure('buffers outside of it', external),
    figure('code: node and its libraries', files),
    figure(`malloc, and the stacks of ${threads} threads`, Math.max(0, others - heap - external)),
  ];
}

/** What is resident of mapped files, and of all other mappings (proc_pid_smaps(5)). */
function mappedMiB(pid: number): { readonly files: number; readonly others: number } {
  const sum = { files: 0, others: 0 };
  let owner: keyof typeof sum = 'others';
  for (const line of readFileSync(`/proc/${pid}/smaps`, 'utf8').split('\n')) {
    // The first line of a mapping begins with its addresses, and ends with the path of its file.
    if (/^[0-9a-f]+-[0-9a-f]+ /.test(line)) owner = / \/\S/.test(line) ? 'files' : 'others';
    const resident = /^Rss:\s+(\d+) kB/.exec(line);
    if (resident) sum[owner] += Number(resident[1]) / 1024;
  }
  return sum;
}
