import { errorText, type IpFamily, isNotFound, NodeplaneError } from '../core/index.ts';
import type { RouteKernel } from './kernel/route-kernel.ts';
import { textOf } from './kernel/route-object.ts';
import { isOurDevice } from './plan/device-diff.ts';
import { diffObjects } from './plan/diff.ts';
import { TUNNEL_NAMES } from './plan/tunnel.ts';

/**
 * Removes the routes, nexthops and the device that nodeplane made in one family, and nothing else.
 *
 * @returns how many objects were removed, the device among them
 * @throws rejects with ERR_CLEANUP naming the first that could not be removed, after all were tried; KernelError
 */
export async function removeRoutes(kernel: RouteKernel, family: IpFamily): Promise<number> {
  const device = kernel.device(TUNNEL_NAMES[family]);
  const ours = device && isOurDevice(device) ? device : undefined;
  const operations = diffObjects(await kernel.list(ours?.index), []);
  const errors = kernel.apply(operations);
  if (ours) kernel.changeDevice([{ action: 'delete', index: ours.index }]);
  for (const [index, error] of errors.entries()) {
    if (!error || isNotFound(error)) continue;
    const message = `Cannot remove ${textOf(operations[index]!.object)}: ${errorText(error)}`;
    throw new NodeplaneError('ERR_CLEANUP', message, { cause: error });
  }
  return operations.length + (ours ? 1 : 0);
}
