import { Worker } from 'node:worker_threads';
import type { WorkerInput } from '../netns-worker.ts';
import { builtProgram } from '../programs.ts';
import type { CommandName, Commands, Reply, Request } from './protocol.ts';

/** The other end of a lab host's thread. */
export interface WorkerClient {
  call<K extends CommandName>(command: K, input: Parameters<Commands[K]>[0]): ReturnType<Commands[K]>;
  /** Ends the thread with all its sockets; what is under way rejects. */
  stop(): Promise<void>;
}

interface Waiting {
  resolve(output: unknown): void;
  reject(error: Error): void;
}

/** Starts a thread inside a network namespace. It keeps the process alive only while a call is under way. */
export function startWorker(input: WorkerInput): WorkerClient {
  const worker = new Worker(builtProgram('netns-worker.js'), { workerData: input });
  const waiting = new Map<number, Waiting>();
  let lastId = 0;
  let ended: Error | undefined;
  worker.unref();

  const settle = (id: number): Waiting | undefined => {
    const one = waiting.get(id);
    waiting.delete(id);
    if (waiting.size === 0) worker.unref();
    return one;
  };
  worker.on('message', (reply: Reply) => {
    const one = settle(reply.id);
    if (reply.ok) one?.resolve(reply.output);
    else one?.reject(new Error(reply.message));
  });
  const end = (error: Error) => {
    ended ??= error;
    for (const id of [...waiting.keys()]) settle(id)?.reject(ended);
  };
  worker.on('error', (error) => end(new Error(`The thread of lab host "${input.name}" failed`, { cause: error })));
  worker.on('exit', () => end(new Error(`The thread of lab host "${input.name}" has ended`)));

  return {
    call(command, input) {
      const result = new Promise((resolve, reject) => {
        if (ended) {
          reject(ended);
          return;
        }
        const id = ++lastId;
        waiting.set(id, { resolve, reject });
        worker.ref();
        worker.postMessage({ id, command, input } satisfies Request);
      });
      return result as ReturnType<Commands[typeof command]>;
    },
    async stop() {
      await worker.terminate();
    },
  };
}
