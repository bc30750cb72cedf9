import {
  addressBits,
  cidrEquals,
  type Drift,
  formatCidr,
  ipEquals,
  NodeplaneError,
  sameBytes,
} from '../../core/index.ts';
import { DEVICE_ALIAS, type DeviceOperation, type PresentDevice } from '../kernel/route-kernel.ts';
import type { TunnelDevice } from './tunnel.ts';

/** Whether nodeplane made the link. */
export function isOurDevice({ kind, alias }: Pick<PresentDevice, 'kind' | 'alias'>): boolean {
  return (kind === 'vxlan' || kind === 'wireguard') && alias === DEVICE_ALIAS;
}

/**
 * The next steps from the device that is there to the one that is wanted. Steps that need the index of a device that has yet to
 * be made come when it is there: ask again until there are none.
 *
 * @throws ERR_ROUTES when the name belongs to a device of somebody else
 */
export function diffDevice(present: PresentDevice | undefined, wanted: TunnelDevice | undefined): DeviceOperation[] {
  if (!present) return wanted ? [{ action: 'create', device: wanted }] : [];
  if (!isOurDevice(present)) {
    if (wanted) throw foreignDevice(present, wanted);
    return [];
  }
  const { index } = present;
  if (!wanted) return [{ action: 'delete', index }];
  if (!canBecome(present, wanted))
    return [
      { action: 'delete', index },
      { action: 'create', device: wanted },
    ];
  const address = { address: wanted.address, prefixLength: addressBits(wanted.address.family) };
  const isThere = present.addresses.some((one) => cidrEquals(one, address));
  return [
    ...changes(present, wanted),
    ...present.addresses
      .filter((one) => !cidrEquals(one, address))
      .map((one): DeviceOperation => ({ action: 'delete-address', index, address: one })),
    ...(isThere ? [] : [{ action: 'add-address', index, address } as const]),
    ...(present.up ? [] : [{ action: 'up', index } as const]),
  ];
}

/**
 * The kernel changes neither VNI nor port of a device; it would change the link, but keep what it took over from the old one. What
 * others added is of many kinds, and nobody does it often.
 */
function canBecome(present: PresentDevice, wanted: TunnelDevice): boolean {
  return isSameNetwork(present, wanted) && present.additions.length === 0;
}

function isSameNetwork({ kind, vxlan }: PresentDevice, wanted: TunnelDevice): boolean {
  if (wanted.kind === 'wireguard') return kind === 'wireguard';
  return vxlan?.vni === wanted.vni && vxlan.port === wanted.port && vxlan.link === wanted.underlay;
}

function changes({ index, mtu, mac, vxlan }: PresentDevice, wanted: TunnelDevice): DeviceOperation[] {
  const local = vxlan?.local;
  const change = {
    ...(mtu !== wanted.mtu && { mtu: wanted.mtu }),
    ...(wanted.kind === 'vxlan' && !sameBytes(mac, wanted.mac) && { mac: wanted.mac }),
    ...(wanted.kind === 'vxlan' && (!local || !ipEquals(local, wanted.local)) && { local: wanted.local }),
    // As it was made: the entries are ours alone to write, and the underlay may be many hops long.
    ...(vxlan?.learning && { learning: false }),
    ...(vxlan && vxlan.ttl !== 0 && { ttl: 0 }),
  };
  return Object.keys(change).length === 0 ? [] : [{ action: 'change', index, ...change }];
}

/**
 * In what the device of this name differs from the one that is wanted.
 *
 * @throws as `diffDevice`
 */
export function deviceDrift(
  name: string,
  present: PresentDevice | undefined,
  wanted: TunnelDevice | undefined,
): Drift[] {
  const operations = diffDevice(present, wanted);
  const [first] = operations;
  if (!first) return [];
  const object = `device ${name}`;
  if (first.action === 'create') return [{ object, difference: 'missing' }];
  const isUnwanted = first.action === 'delete' && operations.length === 1;
  if (isUnwanted) return [{ object, difference: 'unexpected' }];
  const theirs =
    present && wanted && first.action === 'delete' && isSameNetwork(present, wanted)
      ? present.additions
      : operations.flatMap(describeOperation);
  return [{ object, difference: 'changed', ours: [], theirs }];
}

/** In what the device differs that needs this step. */
function describeOperation(operation: DeviceOperation): string[] {
  switch (operation.action) {
    case 'create':
      return [];
    case 'delete':
      return ['another VNI, port or link than wanted, or of another kind'];
    case 'change': {
      const { action: _, index: _index, ...change } = operation;
      return [`another ${Object.keys(change).join(', ')}`];
    }
    case 'up':
      return ['it is down'];
    case 'add-address':
      return [`without the address ${formatCidr(operation.address)}`];
    case 'delete-address':
      return [`with the address ${formatCidr(operation.address)}`];
  }
}

/** As people write them. */
export const KIND_NAMES: Readonly<Record<TunnelDevice['kind'], string>> = { vxlan: 'VXLAN', wireguard: 'WireGuard' };

function foreignDevice({ name, kind, alias }: PresentDevice, wanted: TunnelDevice): NodeplaneError {
  const what = `${kind === '' ? 'a device' : `a device of kind ${kind}`}${alias === '' ? '' : ` ("${alias}")`}`;
  const message = `Cannot make the ${KIND_NAMES[wanted.kind]} device "${name}": there is ${what} of this name that nodeplane did not make; rename or remove it (ip link delete ${name})`;
  return new NodeplaneError('ERR_ROUTES', message, { facts: { device: name, kind } });
}
