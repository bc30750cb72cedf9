import { errorText, type IpFamily, isNotFound, NodeplaneError, type Removals } from '../core/index.ts';
import type { RouteKernel } from './kernel/route-kernel.ts';
import { RTPROT_NODEPLANE, textOf } from './kernel/route-object.ts';
import { isOurDevice } from './plan/device-diff.ts';
import { diffObjects } from './plan/diff.ts';
import { TUNNEL_NAMES } from './plan/tunnel.ts';

/**
 * Removes the routes, nexthops and the device that nodeplane made in one family, and nothing else.
 *
 * @param removals hears of them, and says whether to do it. @default yes
 * @returns how many objects were removed, the device among them
 * @throws rejects with ERR_CLEANUP naming the first that could not be removed, after all were tried; KernelError
 */
export async function removeRoutes(kernel: RouteKernel, family: IpFamily, removals?: Removals): Promise<number> {
  const device = kernel.device(TUNNEL_NAMES[family]);
  const ours = device && isOurDevice(device) ? device : undefined;
  const operations = diffObjects(await kernel.list(ours?.index), []);
  const count = operations.length + (ours ? 1 : 0);
  const noted = [
    ...operations.map(({ object }) => ({
      object: `routes ${family}, ${textOf(object)}`,
      why:
        object.kind === 'route' || object.kind === 'nexthop'
          ? `nodeplane’s routing protocol, ${RTPROT_NODEPLANE}`
          : 'on nodeplane’s device',
    })),
    ...(ours ? [{ object: `routes ${family}, device ${ours.name}`, why: `nodeplane’s alias, "${ours.alias}"` }] : []),
  ];
  if (removals?.note(...noted) === false) return count;
  const errors = kernel.apply(operations);
  if (ours) kernel.changeDevice([{ action: 'delete', index: ours.index }]);
  for (const [index, error] of errors.entries()) {
    if (!error || isNotFound(error)) continue;
    const message = `Cannot remove ${textOf(operations[index]!.object)}: ${errorText(error)}`;
    throw new NodeplaneError('ERR_CLEANUP', message, { cause: error });
  }
  return count;
}
