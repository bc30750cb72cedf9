import { NodeplaneError } from '../../core/index.ts';
import { Netlink } from '../../netlink/index.ts';
import { inNetns, isOwnNetns, type NetnsHandle, openNetns } from '../../sys/index.ts';
import type { AttachmentEnvironment } from '../protocol/environment.ts';
import { CNI_ERROR, CniError } from '../protocol/errors.ts';

/** Enough for what is read of a pod as a rule; room for more is made when more comes. */
const FEW_BYTES = 4096;

/** The pod's network namespace, held open. */
export interface PodNamespace {
  readonly path: string;
  /** Its descriptor, for the kernel to put a link into. */
  readonly fd: number;
  /** A NETLINK_ROUTE socket of this namespace; needs no switch any more. */
  readonly netlink: Netlink;
  /** Runs the synchronous `fn` inside, for what has no netlink interface: its sysctls. */
  run<T>(fn: () => T extends Promise<unknown> ? never : T): T;
  close(): void;
}

/**
 * Opens the namespace CNI_NETNS names.
 *
 * @throws CniError code 4 when it is no network namespace, code 8 when it is the one we run in
 */
export function openPodNamespace({ netns, netnsFd, allowOwnNetns }: AttachmentEnvironment): PodNamespace {
  const handle = netnsFd === undefined ? openOrExplain(netns) : { fd: netnsFd, path: netns, close: () => {} };
  try {
    if (!allowOwnNetns && isOwnNetns(`/proc/self/fd/${handle.fd}`)) {
      throw new CniError(
        CNI_ERROR.INVALID_NETNS,
        `CNI_NETNS "${netns}" is the network namespace the plugin runs in; a pod needs one of its own`,
      );
    }
    const netlink = enterOrExplain(handle);
    return {
      path: netns,
      fd: handle.fd,
      netlink,
      run: (fn) => inNetns(handle, fn),
      close() {
        netlink.close();
        handle.close();
      },
    };
  } catch (error) {
    handle.close();
    throw error;
  }
}

function openOrExplain(netns: string): NetnsHandle {
  try {
    return openNetns(netns);
  } catch (cause) {
    throw unusable(netns, cause);
  }
}

function enterOrExplain(handle: NetnsHandle): Netlink {
  try {
    return inNetns(handle, () => Netlink.openRoute({ readBytes: FEW_BYTES }));
  } catch (cause) {
    if (cause instanceof NodeplaneError && cause.code === 'ERR_NETNS') throw unusable(handle.path, cause);
    throw cause;
  }
}

function unusable(netns: string, cause: unknown): CniError {
  const { cause: reason } = cause as { cause?: unknown };
  return new CniError(CNI_ERROR.INVALID_ENVIRONMENT, `Cannot use CNI_NETNS "${netns}": it is no network namespace`, {
    details: reason instanceof Error ? reason.message : String(cause),
    cause,
  });
}
