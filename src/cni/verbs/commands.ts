import { parseNetworkConfig } from '../config/config.ts';
import { reportUnknownKeys } from '../config/known-keys.ts';
import { type Environment, readAttachment, type Variable } from '../protocol/environment.ts';
import type { NetworkHeader } from '../protocol/header.ts';
import { resultObject } from '../protocol/result.ts';
import type { CniVersion } from '../protocol/versions.ts';
import { attach } from './attach.ts';
import { detach } from './detach.ts';

/** One verb of the protocol that works on a network configuration. */
export interface Command {
  /** Variables that must be there. */
  readonly required: readonly Variable[];
  /** The first version of the specification that has the verb. */
  readonly since: CniVersion;
  readonly run: CommandHandler;
  /** The same for the plugin type `loopback`. */
  readonly runLoopback: CommandHandler;
}

/** What a handler is given. */
export interface CommandInput {
  readonly env: Environment;
  /** An open descriptor of the pod's namespace, if the caller has one. */
  readonly netns: number | undefined;
  readonly header: NetworkHeader;
  /** Told what people should know although the command succeeds or its error says something else. */
  readonly report: (message: string) => void;
}

/** Returns the object to print; undefined prints nothing. */
export type CommandHandler = (input: CommandInput) => Promise<object | undefined>;

const nothingToDo: CommandHandler = async () => undefined;

/** All verbs but VERSION, which needs no configuration. What is called for every pod is loaded at once, the rest when used. */
export const COMMANDS: Readonly<Record<string, Command>> = {
  ADD: {
    required: ['CNI_CONTAINERID', 'CNI_NETNS', 'CNI_IFNAME', 'CNI_PATH'],
    since: '0.1.0',
    run: async (input) => {
      const { env, netns, header, report } = input;
      const environment = readAttachment(env, netns);
      const config = parseNetworkConfig(header, env.CNI_ARGS);
      reportUnknownKeys(header.raw, config, report);
      return resultObject(await attach(config, environment, input), header.cniVersion);
    },
    runLoopback: async (input) => (await import('./loopback.ts')).addLoopback(input),
  },
  DEL: {
    required: ['CNI_CONTAINERID', 'CNI_IFNAME', 'CNI_PATH'],
    since: '0.1.0',
    run: async ({ env, netns, header, report }) => {
      await detach(header, readAttachment(env, netns), env, report);
      return undefined;
    },
    runLoopback: async (input) => (await import('./loopback.ts')).deleteLoopback(input),
  },
  CHECK: {
    required: ['CNI_CONTAINERID', 'CNI_NETNS', 'CNI_IFNAME', 'CNI_PATH'],
    since: '0.4.0',
    run: async ({ env, netns, header, report }) => {
      const { check } = await import('./check.ts');
      await check(parseNetworkConfig(header, env.CNI_ARGS), header, readAttachment(env, netns), env, report);
      return undefined;
    },
    runLoopback: async (input) => (await import('./loopback.ts')).checkLoopback(input),
  },
  GC: {
    required: ['CNI_PATH'],
    since: '1.1.0',
    run: async ({ env, header, report }) => {
      const { collectGarbage } = await import('./gc.ts');
      await collectGarbage(header, env, report);
      return undefined;
    },
    runLoopback: nothingToDo,
  },
  STATUS: {
    required: ['CNI_PATH'],
    since: '1.1.0',
    run: async ({ env, header, report }) => {
      const { checkStatus } = await import('./status.ts');
      await checkStatus(header, env, report);
      return undefined;
    },
    runLoopback: nothingToDo,
  },
};
