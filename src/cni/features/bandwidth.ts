import type { Netlink } from '../../netlink/index.ts';
import {
  deleteIngressQdisc,
  getLink,
  type Link,
  listIngressFilters,
  listLinks,
  listQdiscs,
  newIfb,
  newIngressQdisc,
  redirectIngress,
  setLink,
  setTokenBucket,
} from '../../netlink/route/index.ts';
import { failpoint } from '../../sys/index.ts';
import type { TrafficShape } from '../config/feature-config.ts';
import { deleteIfPresent, type HostLink } from '../link/host-link.ts';
import type { AttachmentKey } from '../protocol/attachment-key.ts';
import { CNI_ERROR, CniError } from '../protocol/errors.ts';
import type { ResultInterface } from '../protocol/result.ts';
import type { AttachmentFeature, FeatureContext } from './feature.ts';
import { isSameBucket, tokenBucketFor } from './token-bucket.ts';

/**
 * Limits of a pod's traffic, shaped where the pod cannot reach: on the host's end of its veth pair.
 *
 * What goes to the pod leaves by that end and waits in a token bucket there. What comes from the pod is received by it, and
 * the kernel queues only what is sent; so it is redirected to an ifb device, whose token bucket it leaves by, and goes on
 * from there as if nothing had happened. A token bucket on the pod's own end would need no device, but root in the pod could
 * remove it. The first bucket goes with the veth pair, the ifb device has to be deleted.
 */
export const bandwidth: AttachmentFeature = {
  name: 'bandwidth',

  // All of it are links and queueing disciplines.
  wantedIn: () => ({}),

  setUp({ key, features, host, hostLink, undo }) {
    const { ingress, egress } = features.bandwidth!;
    if (ingress) host.execute(setTokenBucket(hostLink.index, tokenBucketFor(ingress, hostLink.mtu)));
    if (!egress) return [];
    deleteIfb(host, key);
    undo.add('limit what the pod sends', () => deleteIfb(host, key));
    return [shapeEgress(host, key, hostLink, egress)];
  },

  check: limitProblems,

  tearDown({ key, host }) {
    deleteIfb(host, key);
  },

  collect({ network, valid, host }) {
    const keep = new Set(valid.map(ifbName));
    for (const link of listLinks(host)) {
      // Of one without alias nobody knows the network; the DEL of its attachment finds it by its name.
      if (link.kind !== 'ifb' || keep.has(link.name) || !link.alias.startsWith(`${network}/`)) continue;
      if (/^ifb[0-9a-f]{11}$/.test(link.name)) deleteIfPresent(host, link.index);
    }
  },
};

/** A pod with limits, and the node's end of its veth pair. */
export type LimitedPod = Pick<FeatureContext, 'key' | 'features' | 'host' | 'hostLink'>;

/** A sentence for each limit of the pod that the kernel does not keep. Throws KernelError. */
export function limitProblems({ key, features, host, hostLink }: LimitedPod): readonly string[] {
  const { ingress, egress } = features.bandwidth!;
  const problems: string[] = [];
  const expectBucket = (link: Pick<Link, 'index' | 'name'>, shape: TrafficShape, what: string) => {
    const wanted = tokenBucketFor(shape, hostLink.mtu);
    const found = listQdiscs(host, link.index).find(({ kind }) => kind === 'tbf')?.tokenBucket;
    if (!found) problems.push(`Device "${link.name}" does not limit ${what}`);
    else if (!isSameBucket(found, wanted)) {
      problems.push(
        `Device "${link.name}" limits ${what} to ${found.rate} bytes/s with a burst of ${found.burst} bytes, not to ${wanted.rate} bytes/s with ${wanted.burst} bytes`,
      );
    }
  };
  if (ingress) expectBucket(hostLink, ingress, 'what the pod receives');
  if (!egress) return problems;
  const ifb = findIfb(host, key);
  if (!ifb?.up) return [...problems, `Device "${ifbName(key)}", which limits what the pod sends, is missing or down`];
  if (!listIngressFilters(host, hostLink.index).some(({ redirectsTo }) => redirectsTo === ifb.index)) {
    problems.push(`Device "${hostLink.name}" does not pass what the pod sends through "${ifb.name}"`);
  }
  expectBucket(ifb, egress, 'what the pod sends');
  return problems;
}

/** Makes the limits of the pod anew, whatever is left of them. Throws as ADD does. */
export function limitAgain({ key, features, host, hostLink }: LimitedPod): void {
  const { ingress, egress } = features.bandwidth!;
  if (ingress) host.execute(setTokenBucket(hostLink.index, tokenBucketFor(ingress, hostLink.mtu)));
  if (!egress) return;
  deleteIfb(host, key);
  if (listQdiscs(host, hostLink.index).some(({ kind }) => kind === 'ingress')) {
    host.execute(deleteIngressQdisc(hostLink.index));
  }
  try {
    shapeEgress(host, key, hostLink, egress);
  } catch (error) {
    deleteIfb(host, key);
    throw error;
  }
}

function shapeEgress(
  host: Netlink,
  key: AttachmentKey,
  { index, mtu }: HostLink,
  egress: TrafficShape,
): ResultInterface {
  const name = ifbName(key);
  host.execute(newIfb({ name, mtu }));
  failpoint('ifb');
  const ifb = getLink(host, { name });
  if (!ifb) throw new CniError(CNI_ERROR.KERNEL_REFUSED, `Device "${name}" vanished while it was set up; try again`);
  host.execute(
    setLink(ifb.index, { alias: key.alias }),
    // The limit before the redirection, so that nothing passes without.
    setTokenBucket(ifb.index, tokenBucketFor(egress, mtu)),
    newIngressQdisc(index),
    redirectIngress(index, ifb.index),
  );
  return { name, mac: ifb.address, mtu: ifb.mtu };
}

/** Follows from the attachment as the name of the veth pair's end does. */
function ifbName({ hostName }: AttachmentKey): string {
  return hostName.replace(/^veth/, 'ifb');
}

function findIfb(host: Netlink, key: AttachmentKey): Link | undefined {
  const link = getLink(host, { name: ifbName(key) });
  // Without alias it was made by an ADD that died before it came to that.
  return link?.kind === 'ifb' && (link.alias === key.alias || link.alias === '') ? link : undefined;
}

function deleteIfb(host: Netlink, key: AttachmentKey): void {
  const link = findIfb(host, key);
  if (link) deleteIfPresent(host, link.index);
}
