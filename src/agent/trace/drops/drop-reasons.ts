import { errorText, isNotFound, KernelError, readBe16 } from '../../../core/index.ts';
import { type DroppedPacket, watchDrops } from '../../../netlink/drop-monitor/index.ts';
import type { FlowBook } from '../flow-book.ts';
import { readIpPacket, type TracedPacket } from '../read-packet.ts';

/** What the kernel's drop monitor adds to a trace. */
export interface DropReasons {
  /** Why not all are known; undefined: they are. */
  readonly missing: string | undefined;
  /** Hands over now all that waits. */
  catchUp(): void;
  close(): void;
}

/** Where an IP header may begin: behind Ethernet, behind a VLAN's tag, or at once. */
const LINK_HEADERS = [14, 18, 0];
const ETHER_TYPES: Readonly<Record<number, number>> = { 4: 0x0800, 6: 0x86dd };

/** Has the kernel tell what it drops, as far as it can, and notes in `book` what belongs to its flows. */
export function noteDropReasons(book: FlowBook): DropReasons {
  let missing: string | undefined;
  try {
    const { catchUp, close } = watchDrops((drop) => {
      if (drop === 'lost') {
        missing = 'more packets were dropped than could be read';
        return;
      }
      const packet = readDropped(drop);
      if (packet) book.dropped(packet, { reason: drop.reason ?? 'no reason told', place: drop.place });
    });
    return {
      get missing() {
        return missing;
      },
      catchUp,
      close,
    };
  } catch (error) {
    missing = whyMissing(error);
    return { missing, catchUp: () => {}, close: () => {} };
  }
}

function whyMissing(error: unknown): string {
  if (isNotFound(error)) return "no module drop_monitor, or this is not the machine's first network namespace";
  if (error instanceof KernelError && error.errnoName === 'EBUSY')
    return 'another program has the kernel count drops by place';
  return errorText(error);
}

/** The headers of a dropped packet; undefined when it is none of IP, or they are cut off before the ports. Pure. */
export function readDropped({ bytes, etherType }: DroppedPacket): TracedPacket | undefined {
  const start = LINK_HEADERS.find(
    (at) => ETHER_TYPES[(bytes[at] ?? 0) >> 4] === etherType && (at === 0 || readBe16(bytes, at - 2) === etherType),
  );
  if (start === undefined) return undefined;
  return readIpPacket(bytes.subarray(start));
}
