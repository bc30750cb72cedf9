import { errorText, type IpFamily, isNotFound, NodeplaneError, type Removals } from '../core/index.ts';
import type { RouteKernel } from './kernel/route-kernel.ts';
import { RTPROT_NODEPLANE, textOf } from './kernel/route-object.ts';
import { isOurDevice } from './plan/device-diff.ts';
import { diffObjects } from './plan/diff.ts';
import { deviceNames } from './plan/tunnel.ts';

/**
 * Removes the routes, nexthops and devices that nodeplane made in one family, and nothing else.
 *
 * @param removals hears of them, and says whether to do it. @default yes
 * @returns how many objects were removed, devices among them
 * @throws rejects with ERR_CLEANUP naming the first that could not be removed, after all were tried; KernelError
 */
export async function removeRoutes(kernel: RouteKernel, family: IpFamily, removals?: Removals): Promise<number> {
  const devices = deviceNames(family).flatMap((name) => kernel.device(name) ?? []);
  const ours = devices.filter(isOurDevice);
  const vxlan = ours.find(({ kind }) => kind === 'vxlan');
  const operations = diffObjects(await kernel.list(vxlan?.index), []);
  const count = operations.length + ours.length;
  const noted = [
    ...operations.map(({ object }) => ({
      object: `routes ${family}, ${textOf(object)}`,
      why:
        object.kind === 'route' || object.kind === 'nexthop'
          ? `nodeplane’s routing protocol, ${RTPROT_NODEPLANE}`
          : 'on nodeplane’s device',
    })),
    ...ours.map(({ name, alias }) => ({
      object: `routes ${family}, device ${name}`,
      why: `nodeplane’s alias, "${alias}"`,
    })),
  ];
  if (removals?.note(...noted) === false) return count;
  const errors = kernel.apply(operations);
  kernel.changeDevice(ours.map(({ index }) => ({ action: 'delete', index })));
  for (const [index, error] of errors.entries()) {
    if (!error || isNotFound(error)) continue;
    const message = `Cannot remove ${textOf(operations[index]!.object)}: ${errorText(error)}`;
    throw new NodeplaneError('ERR_CLEANUP', message, { cause: error });
  }
  return count;
}
