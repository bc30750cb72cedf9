import type { Variable } from '../protocol/environment.ts';
import type { CniVersion } from '../protocol/versions.ts';
import { attach } from './attach.ts';
import { detach } from './detach.ts';
import type { Verb } from './request.ts';

/** One verb of the protocol that works on a network configuration. */
export interface Command {
  /** Variables that must be there. */
  readonly required: readonly Variable[];
  /** The first version of the specification that has the verb. */
  readonly since: CniVersion;
  readonly run: Verb;
  /** The same for the plugin type `loopback`. */
  readonly runLoopback: Verb;
}

const nothingToDo: Verb = async () => undefined;

/** All verbs but VERSION, which needs no configuration. What is called for every pod is loaded at once, the rest when used. */
export const COMMANDS: Readonly<Record<string, Command>> = {
  ADD: {
    required: ['CNI_CONTAINERID', 'CNI_NETNS', 'CNI_IFNAME', 'CNI_PATH'],
    since: '0.1.0',
    run: attach,
    runLoopback: async (request) => (await import('./loopback.ts')).addLoopback(request),
  },
  DEL: {
    required: ['CNI_CONTAINERID', 'CNI_IFNAME', 'CNI_PATH'],
    since: '0.1.0',
    run: detach,
    runLoopback: async (request) => (await import('./loopback.ts')).deleteLoopback(request),
  },
  CHECK: {
    required: ['CNI_CONTAINERID', 'CNI_NETNS', 'CNI_IFNAME', 'CNI_PATH'],
    since: '0.4.0',
    run: async (request) => (await import('./check.ts')).check(request),
    runLoopback: async (request) => (await import('./loopback.ts')).checkLoopback(request),
  },
  GC: {
    required: ['CNI_PATH'],
    since: '1.1.0',
    run: async (request) => (await import('./gc.ts')).collectGarbage(request),
    runLoopback: nothingToDo,
  },
  STATUS: {
    required: ['CNI_PATH'],
    since: '1.1.0',
    run: async (request) => (await import('./status.ts')).checkStatus(request),
    runLoopback: nothingToDo,
  },
};
