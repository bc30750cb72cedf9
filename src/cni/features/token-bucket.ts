import type { TokenBucket } from '../../netlink/route/index.ts';
import type { TrafficShape } from '../config/feature-config.ts';

/** How long a byte may wait, as in the reference bandwidth plugin. */
const LATENCY_SECONDS = 0.025;
/** Ethernet header and a VLAN tag. */
const FRAME_OVERHEAD = 18;
/** The kernel tells the time that a burst takes in 2^32 - 1 steps of 64 ns. */
const LONGEST_TOLD_SECONDS = ((2 ** 32 - 1) * 64) / 1e9;
/** The kernel counts in 32 bits. */
const MOST_BYTES = 2 ** 32 - 1;

/**
 * The token bucket for one direction, as the reference bandwidth plugin computes it, except that a burst too small for one
 * full frame is enlarged to that: the kernel would drop every such frame.
 *
 * @param mtu of the device, in bytes
 */
export function tokenBucketFor({ rate, burst }: TrafficShape, mtu: number): TokenBucket {
  const bytesPerSecond = Math.max(1, Math.floor(rate / 8));
  const burstBytes = Math.min(Math.max(Math.floor(burst / 8), mtu + FRAME_OVERHEAD), MOST_BYTES);
  const limit = Math.min(Math.floor(bytesPerSecond * LATENCY_SECONDS) + burstBytes, MOST_BYTES);
  return { rate: bytesPerSecond, burst: burstBytes, limit };
}

/** Whether a bucket read back from the kernel is the one that was set; its burst loses a few bytes on the way. */
export function isSameBucket(found: TokenBucket, wanted: TokenBucket): boolean {
  const tolerance = Math.max(2, wanted.burst / 100);
  // It is told as a time, and of that the lower 32 bits: nothing can be compared then.
  if (wanted.burst / wanted.rate > LONGEST_TOLD_SECONDS)
    return found.rate === wanted.rate && found.limit === wanted.limit;
  return (
    found.rate === wanted.rate && found.limit === wanted.limit && Math.abs(found.burst - wanted.burst) <= tolerance
  );
}
