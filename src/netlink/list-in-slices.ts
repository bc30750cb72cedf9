import { yielder } from '../core/index.ts';
import type { NetlinkRequest } from './message.ts';
import type { Netlink } from './netlink.ts';

/**
 * Reads a listing of any length without holding up the event loop. Until it is done nothing else may be asked of `netlink`.
 *
 * @param decode undefined: the message is left out
 * @throws what `Netlink.dumpAsync` and `decode` throw
 */
export async function listInSlices<T>(
  netlink: Netlink,
  request: NetlinkRequest,
  decode: (payload: Uint8Array) => T | undefined,
): Promise<T[]> {
  const rest = yielder();
  const objects: T[] = [];
  for (const payload of await netlink.dumpAsync(request, async () => rest())) {
    const object = decode(payload);
    if (object !== undefined) objects.push(object);
    const wait = rest();
    if (wait) await wait;
  }
  return objects;
}
