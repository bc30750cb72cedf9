import { errorText, type IpFamily, isNotFound, NodeplaneError } from '../core/index.ts';
import type { RouteKernel } from './kernel/route-kernel.ts';
import { textOf } from './kernel/route-object.ts';
import { isOurDevice } from './plan/device-diff.ts';
import { diffObjects } from './plan/diff.ts';
import { deviceNames } from './plan/tunnel.ts';

/**
 * Removes the routes, nexthops and devices that nodeplane made in one family, and nothing else.
 *
 * @returns how many objects were removed, devices among them
 * @throws rejects with ERR_CLEANUP naming the first that could not be removed, after all were tried; KernelError
 */
export async function removeRoutes(kernel: RouteKernel, family: IpFamily): Promise<number> {
  const devices = deviceNames(family).flatMap((name) => kernel.device(name) ?? []);
  const ours = devices.filter(isOurDevice);
  const vxlan = ours.find(({ kind }) => kind === 'vxlan');
  const operations = diffObjects(await kernel.list(vxlan?.index), []);
  const errors = kernel.apply(operations);
  kernel.changeDevice(ours.map(({ index }) => ({ action: 'delete', index })));
  for (const [index, error] of errors.entries()) {
    if (!error || isNotFound(error)) continue;
    const message = `Cannot remove ${textOf(operations[index]!.object)}: ${errorText(error)}`;
    throw new NodeplaneError('ERR_CLEANUP', message, { cause: error });
  }
  return operations.length + ours.length;
}
