import { CNI_ERROR, CniError } from './errors.ts';

declare const brand: unique symbol;
type Branded<Name extends string> = string & { readonly [brand]: Name };

/** Safe as a file name and a part of one: letters, digits, `_`, `.`, `-`, beginning with a letter or digit. */
export type ContainerId = Branded<'ContainerId'>;
/** Safe as above. */
export type NetworkName = Branded<'NetworkName'>;
/** What the kernel takes as a name of a link. */
export type InterfaceName = Branded<'InterfaceName'>;

/** The variables of the protocol that a command may need. */
export type Variable = 'CNI_CONTAINERID' | 'CNI_NETNS' | 'CNI_IFNAME' | 'CNI_PATH';

/** The variables about an attachment, checked. */
export interface AttachmentEnvironment {
  readonly containerId: ContainerId;
  readonly ifname: InterfaceName;
  /** Path of the pod's namespace; '' when DEL was not told. */
  readonly netns: string;
  /** An open descriptor of it, if the caller has one; used instead of opening the path, and left open. */
  readonly netnsFd?: number | undefined;
  /** CNI_NETNS_OVERRIDE: the pod's namespace may be the plugin's own. */
  readonly allowOwnNetns: boolean;
}

export type Environment = Readonly<Record<string, string | undefined>>;

const IDENTIFIER = /^[a-zA-Z0-9][a-zA-Z0-9_.-]*$/;
/** IFNAMSIZ is 16 with the final NUL. */
const LONGEST_INTERFACE_NAME = 15;

/** Checks that a command's variables are there. All that are missing are named in one error (code 4). */
export function requireVariables(env: Environment, required: readonly Variable[]): void {
  const missing = required.filter((name) => !env[name]);
  if (missing.length > 0) {
    throw new CniError(CNI_ERROR.INVALID_ENVIRONMENT, `required env variables [${missing.join(',')}] missing`);
  }
}

/** Reads and checks the variables of an attachment. Throws CniError code 4 naming the variable. */
export function readAttachment(env: Environment, netnsFd?: number): AttachmentEnvironment {
  const containerId = env.CNI_CONTAINERID ?? '';
  if (!IDENTIFIER.test(containerId)) {
    throw new CniError(
      CNI_ERROR.INVALID_ENVIRONMENT,
      `Cannot use CNI_CONTAINERID "${containerId}": only letters, digits, "_", "." and "-" are allowed, beginning with a letter or digit`,
    );
  }
  const ifname = env.CNI_IFNAME ?? '';
  const objection = objectionToInterfaceName(ifname);
  if (objection) throw new CniError(CNI_ERROR.INVALID_ENVIRONMENT, `Cannot use CNI_IFNAME "${ifname}": ${objection}`);
  const netns = env.CNI_NETNS ?? '';
  if (netns.includes('\0'))
    throw new CniError(CNI_ERROR.INVALID_ENVIRONMENT, 'Cannot use CNI_NETNS: it contains a NUL');
  return {
    containerId: containerId as ContainerId,
    ifname: ifname as InterfaceName,
    netns,
    netnsFd,
    allowOwnNetns: /^(1|true)$/i.test(env.CNI_NETNS_OVERRIDE ?? ''),
  };
}

/** Whether the CNI specification takes this for a container ID or a network name: no slash is in it. */
export function isIdentifier(text: string): boolean {
  return IDENTIFIER.test(text);
}

/** Whether this can be the name of a network: it becomes the name of a folder. */
export function isNetworkName(name: unknown): name is NetworkName {
  return typeof name === 'string' && IDENTIFIER.test(name);
}

/** Whether a link may have this name: `objectionToInterfaceName` has nothing against it. */
export function isInterfaceName(text: string): text is InterfaceName {
  return objectionToInterfaceName(text) === undefined;
}

/** Why a text is no name for a link, by the rules of the kernel's dev_valid_name() and dev_alloc_name(). */
export function objectionToInterfaceName(name: string): string | undefined {
  if (name === '') return 'it is empty';
  if (Buffer.byteLength(name) > LONGEST_INTERFACE_NAME) return `it is longer than ${LONGEST_INTERFACE_NAME} bytes`;
  if (name === '.' || name === '..') return 'it names a directory';
  // sysctl_dev_name_is_allowed(), net/ipv4/devinet.c.
  if (name === 'all' || name === 'default') return 'the kernel has settings of all interfaces under this name';
  if (/[/:\s\0]/u.test(name)) return '"/", ":" and spaces are not allowed';
  if (name.includes('%')) return 'the kernel would put a number in the place of "%"';
  return undefined;
}
