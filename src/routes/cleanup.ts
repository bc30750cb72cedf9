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
  const { ours, operations } = await present(kernel, family);
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

/** What nodeplane made in one family, and what there is to do to remove it. */
async function present(kernel: RouteKernel, family: IpFamily) {
  const devices = deviceNames(family).flatMap((name) => kernel.device(name) ?? []);
  const ours = devices.filter(isOurDevice);
  const vxlan = ours.find(({ kind }) => kind === 'vxlan');
  return { ours, operations: diffObjects(await kernel.list(vxlan?.index), []) };
}

/**
 * What `removeRoutes` would remove.
 *
 * @returns the number of routes, and the names of devices
 * @throws rejects with KernelError
 */
export async function routesPresent(
  kernel: RouteKernel,
  family: IpFamily,
): Promise<{ readonly routes: number; readonly devices: readonly string[] }> {
  const { ours, operations } = await present(kernel, family);
  const routes = operations.filter(({ object }) => object.kind === 'route').length;
  return { routes, devices: ours.map(({ name }) => name) };
}
