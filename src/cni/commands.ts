import { attach } from './attach.ts';
import { type NetworkHeader, parseNetworkConfig } from './config.ts';
import { detach } from './detach.ts';
import { type Environment, readAttachment, type Variable } from './environment.ts';
import { resultObject } from './result.ts';
import type { CniVersion } from './versions.ts';

/** One verb of the protocol that works on a network configuration. */
export interface Command {
  /** Variables that must be there. */
  readonly required: readonly Variable[];
  /** The first version of the specification that has the verb. */
  readonly since: CniVersion;
  /** Undefined: this plugin does not serve the verb. */
  readonly run: CommandHandler | undefined;
}

/** What a handler is given. */
export interface CommandInput {
  readonly env: Environment;
  readonly header: NetworkHeader;
  /** Told what people should know although the command succeeds or its error says something else. */
  readonly report: (message: string) => void;
}

/** Returns the object to print; undefined prints nothing. */
export type CommandHandler = (input: CommandInput) => object | undefined;

/** All verbs but VERSION, which needs no configuration. */
export const COMMANDS: Readonly<Record<string, Command>> = {
  ADD: {
    required: ['CNI_CONTAINERID', 'CNI_NETNS', 'CNI_IFNAME', 'CNI_PATH'],
    since: '0.3.0',
    run: ({ env, header, report }) => {
      const environment = readAttachment(env);
      return resultObject(attach(parseNetworkConfig(header), environment, report), header.cniVersion);
    },
  },
  DEL: {
    required: ['CNI_CONTAINERID', 'CNI_IFNAME', 'CNI_PATH'],
    since: '0.3.0',
    run: ({ env, header, report }) => {
      detach(header, readAttachment(env), report);
      return undefined;
    },
  },
  CHECK: {
    required: ['CNI_CONTAINERID', 'CNI_NETNS', 'CNI_IFNAME', 'CNI_PATH'],
    since: '0.4.0',
    run: undefined,
  },
  GC: { required: ['CNI_PATH'], since: '1.1.0', run: undefined },
  STATUS: { required: ['CNI_PATH'], since: '1.1.0', run: undefined },
};
