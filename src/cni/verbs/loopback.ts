import { listAddresses, setLink } from '../../netlink/route/index.ts';
import { IFF_UP } from '../../netlink/uapi/index.ts';
import { type LinkFacts, linkFacts } from '../../sys/index.ts';
import { openPodNamespace, type PodNamespace } from '../link/pod-namespace.ts';
import { readAttachment } from '../protocol/environment.ts';
import { CNI_ERROR, CniError } from '../protocol/errors.ts';
import { parseResult } from '../protocol/parse-result.ts';
import type { CniResult } from '../protocol/result.ts';
import type { VerbRequest } from './request.ts';

const LOOPBACK = 'lo';

/**
 * ADD of the plugin type `loopback`: switches the pod's loopback on, whatever CNI_IFNAME says.
 *
 * @returns the loopback with its addresses, or the result of the plugins before
 */
export async function addLoopback({ env, netns, header }: VerbRequest): Promise<CniResult> {
  const { prevResult } = header.raw;
  const previous = prevResult ? parseResult(prevResult, header.cniVersion, 'prevResult') : undefined;
  return inPod(env, netns, (pod) => {
    const lo = loopbackOf(pod);
    if (!isUp(lo)) pod.netlink.execute(setLink(lo.index, { up: true }));
    return previous ?? describe(pod, lo);
  });
}

/** DEL: switches it off; a namespace that is gone is fine. */
export async function deleteLoopback({ env, netns }: VerbRequest): Promise<undefined> {
  if (!env.CNI_NETNS && netns === undefined) return;
  try {
    inPod(env, netns, (pod) => {
      const lo = loopbackOf(pod);
      if (isUp(lo)) pod.netlink.execute(setLink(lo.index, { up: false }));
    });
  } catch (error) {
    if (!(error instanceof CniError && error.cniCode === CNI_ERROR.INVALID_ENVIRONMENT)) throw error;
  }
}

/** CHECK: it is on. */
export async function checkLoopback({ env, netns }: VerbRequest): Promise<undefined> {
  inPod(env, netns, (pod) => {
    if (isUp(loopbackOf(pod))) return;
    throw new CniError(CNI_ERROR.CHECK_FAILED, `The loopback in "${pod.path}" is down`);
  });
}

function inPod<T>(env: VerbRequest['env'], netns: number | undefined, fn: (pod: PodNamespace) => T): T {
  const pod = openPodNamespace(readAttachment(env, netns));
  try {
    return fn(pod);
  } finally {
    pod.close();
  }
}

/** The kernel gives every namespace one, and nobody can delete it. */
function loopbackOf(pod: PodNamespace): LinkFacts {
  const lo = pod.run(() => linkFacts(LOOPBACK));
  if (!lo) throw new CniError(CNI_ERROR.KERNEL_REFUSED, `There is no loopback in "${pod.path}"`);
  return lo;
}

function isUp({ flags }: LinkFacts): boolean {
  return (flags & IFF_UP) !== 0;
}

function describe(pod: PodNamespace, { index, address }: LinkFacts): CniResult {
  const addresses = listAddresses(pod.netlink, { index });
  return {
    interfaces: [{ name: LOOPBACK, mac: address, sandbox: pod.path }],
    ips: addresses.map(({ address: ip, prefixLength }) => ({
      address: { address: ip, prefixLength },
      gateway: undefined,
      interface: 0,
    })),
    routes: [],
    dns: {},
  };
}
