import { setTimeout as delay } from 'node:timers/promises';
import type { Containerd } from './containerd.ts';
import { type CriPod, type PodSettings, runPod } from './pod.ts';

const MAX_ATTEMPTS = 100;
const RETRY_MS = 200;

/** As a kubelet makes and removes pods: several at once, each by one worker. Resolves to the results in order. */
export async function eightAtATime<T>(tasks: readonly (() => Promise<T>)[]): Promise<T[]> {
  const results: T[] = [];
  const queue = [...tasks.entries()];
  const worker = async () => {
    for (let next = queue.shift(); next; next = queue.shift()) results[next[0]] = await next[1]();
  };
  await Promise.all(Array.from({ length: 8 }, worker));
  return results;
}

/** As a kubelet makes a pod: again, with a new sandbox, until it works. What goes on failing fails the test in the end. */
export function runPodPersistently(containerd: Containerd, name: string, settings: PodSettings = {}): Promise<CriPod> {
  return persistently((attempt) => runPod(containerd, name, { ...settings, attempt }));
}

/** Tries until it succeeds, or rejects with the last error after many attempts. */
export async function persistently<T>(task: (attempt: number) => Promise<T>): Promise<T> {
  for (let attempt = 0; ; attempt++) {
    try {
      return await task(attempt);
    } catch (error) {
      if (attempt === MAX_ATTEMPTS) throw error;
      await delay(RETRY_MS);
    }
  }
}

/** As a kubelet collects garbage: removes the sandboxes of failed attempts too. Those of the pods `but` live on. */
export async function removeAllPods({ cri }: Containerd, but: readonly CriPod[] = []): Promise<void> {
  const kept = new Set(but.map(({ sandboxId }) => sandboxId));
  const { items } = await cri.call('ListPodSandbox', {});
  for (const { id } of items.filter((item) => !kept.has(item.id))) {
    await cri.call('StopPodSandbox', { podSandboxId: id });
    await cri.call('RemovePodSandbox', { podSandboxId: id });
  }
}
