import { getSystemErrorMap } from 'node:util';
import type { ErrorCode } from './error-codes.ts';

/** The facts of an error as data, for logs and tests; the message already says them in words. */
export type ErrorFacts = Readonly<Record<string, string | number | boolean | undefined>>;

/**
 * The base of every error nodeplane raises on purpose.
 *
 * Messages say what was tried, on what, what was found and what to do about it; they quote values and end without a period.
 * Callers decide by `code` or by the predicates below, never by the message.
 */
export class NodeplaneError extends Error {
  readonly code: ErrorCode;
  readonly facts: ErrorFacts;

  constructor(code: ErrorCode, message: string, options: { facts?: ErrorFacts; cause?: unknown } = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = 'NodeplaneError';
    this.code = code;
    this.facts = options.facts ?? {};
  }
}

/** What an errno means. */
export interface ErrnoMeaning {
  /** Symbolic: `ENOENT`. */
  readonly name: string;
  readonly text: string;
}

/** What a failed kernel request was about. */
export interface KernelErrorDetails {
  /** What was asked, in the kernel's terms: `RTM_NEWLINK`, `setns`, `flock`. */
  readonly operation: string;
  /** On what: `veth1a2b "eth0"`, a path, an address. */
  readonly object?: string;
  /** The positive errno. */
  readonly errno: number;
  /** For an errno that is not the C library's but some subsystem's own. */
  readonly meaning?: ErrnoMeaning | undefined;
  /** The kernel's own sentence (extended ACK), when it gave one. */
  readonly extAck?: string | undefined;
  /** Byte offset in the request that the kernel objected to. */
  readonly offset?: number | undefined;
  /** What to do about it, where that is known. */
  readonly remedy?: string | undefined;
  readonly cause?: unknown;
}

/** A system call or netlink request that the kernel refused. */
export class KernelError extends NodeplaneError {
  readonly operation: string;
  readonly object: string;
  readonly errno: number;
  readonly errnoName: string;
  readonly extAck: string | undefined;

  constructor(code: 'ERR_SYSCALL' | 'ERR_NETLINK_ACK', details: KernelErrorDetails) {
    const { name, text } = details.meaning ?? describeErrno(details.errno);
    const on = details.object ? ` ${details.object}` : '';
    const kernelText = details.extAck ? `: ${details.extAck}` : '';
    const remedy = details.remedy ? `; ${details.remedy}` : '';
    super(code, `${details.operation}${on}: ${text} (${name})${kernelText}${remedy}`, {
      facts: {
        operation: details.operation,
        object: details.object,
        errno: name,
        extAck: details.extAck,
        offset: details.offset,
      },
      cause: details.cause,
    });
    this.name = 'KernelError';
    this.operation = details.operation;
    this.object = details.object ?? '';
    this.errno = details.errno;
    this.errnoName = name;
    this.extAck = details.extAck;
  }
}

/** Numbers no system call returns, but netlink does. */
const KERNEL_ONLY: ReadonlyMap<number, readonly [name: string, text: string]> = new Map([
  [85, ['ERESTART', 'to be tried again']],
]);

/** Made anew at each call of getSystemErrorMap. */
let systemErrors: ReturnType<typeof getSystemErrorMap> | undefined;

/** The symbolic name and the C library's text of a positive errno. */
export function describeErrno(errno: number): ErrnoMeaning {
  systemErrors ??= getSystemErrorMap();
  const entry = systemErrors.get(-errno) ?? KERNEL_ONLY.get(errno);
  return entry ? { name: entry[0], text: entry[1] } : { name: `errno ${errno}`, text: 'unknown error' };
}

/** Errors of node:fs and its like carry the errno's name as their code; ours all begin with ERR_. */
function hasErrno(error: unknown, names: readonly string[]): boolean {
  if (error instanceof KernelError) return names.includes(error.errnoName);
  return error instanceof Error && names.includes((error as NodeJS.ErrnoException).code ?? '');
}

/** The object is not there (any more): deleting it is already done. */
export function isNotFound(error: unknown): boolean {
  return hasErrno(error, ['ENOENT', 'ENODEV', 'ESRCH', 'EADDRNOTAVAIL']);
}

/** What `use` gives; undefined where what it asks for, or would remove, is not there (`isNotFound`). */
export function ifPresent<T>(use: () => T): T | undefined {
  try {
    return use();
  } catch (error) {
    if (isNotFound(error)) return undefined;
    throw error;
  }
}

/** What `use` gives; undefined whatever it throws: for what may vanish, or be hidden from this process, while it is looked at. */
export function attempt<T>(use: () => T): T | undefined {
  try {
    return use();
  } catch {
    return undefined;
  }
}

/** An object of that name or key is there already. */
export function isExists(error: unknown): boolean {
  return hasErrno(error, ['EEXIST']);
}

/** This kernel does not know the feature. */
export function isUnsupported(error: unknown): boolean {
  return hasErrno(error, ['EOPNOTSUPP', 'ENOTSUP', 'EPROTONOSUPPORT', 'EAFNOSUPPORT', 'ESOCKTNOSUPPORT', 'ENOSYS']);
}

/** Descriptors or memory are used up, of this process or of the machine: what was asked for may be there. Causes are looked at too. */
export function isShortage(error: unknown): boolean {
  if (hasErrno(error, ['EMFILE', 'ENFILE', 'ENOMEM', 'ENOBUFS'])) return true;
  return error instanceof Error && error.cause !== undefined && isShortage(error.cause);
}

/** A lock of another process is in the way: nothing of ours is at fault, and it will be free again. */
export function isForeignLock(error: unknown): boolean {
  return error instanceof NodeplaneError && error.code === 'ERR_IPTABLES_LOCK';
}

/** The message of anything thrown, causes included unless it has their words already, on one line. */
export function errorText(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  if (error.cause === undefined) return error.message;
  const cause = errorText(error.cause);
  return error.message.includes(cause) ? error.message : `${error.message}: ${cause}`;
}
