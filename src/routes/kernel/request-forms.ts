import type { NetlinkRequest } from '../../netlink/index.ts';
import { RequestForm } from '../../netlink/route/index.ts';
import { NDA, NHA, ndmsg, nhmsg, RTA, rtmsg } from '../../netlink/uapi/index.ts';
import type { RouteObject, RouteOperation } from './route-object.ts';
import { requestOf } from './route-request.ts';

const { NHA_ID, NHA_GATEWAY } = NHA.declarations;
const { RTA_DST, RTA_GATEWAY, RTA_NH_ID } = RTA.declarations;
const { NDA_DST, NDA_LLADDR } = NDA.declarations;

const HEADER_SIZES: Readonly<Record<RouteObject['kind'], number>> = {
  nexthop: nhmsg.size,
  route: rtmsg.size,
  neighbour: ndmsg.size,
  fdb: ndmsg.size,
};

/** The requests of `requestOf` for thousands of operations of one family, which have few forms. */
export class RequestForms {
  readonly #forms = new Map<number, RequestForm>();

  /** As `requestOf`; the payload is valid until that of another request is asked for. */
  requestOf(operation: RouteOperation): NetlinkRequest {
    const { object } = operation;
    if (object.kind === 'route' && object.way === 'other') return requestOf(operation);
    const key = formOf(operation);
    let form = this.#forms.get(key);
    if (!form) {
      form = new RequestForm(requestOf(operation), HEADER_SIZES[operation.object.kind]);
      this.#forms.set(key, form);
    }
    return new FormedRequest(form, operation);
  }
}

class FormedRequest implements NetlinkRequest {
  readonly #form: RequestForm;
  readonly #operation: RouteOperation;

  constructor(form: RequestForm, operation: RouteOperation) {
    this.#form = form;
    this.#operation = operation;
  }

  get type(): number {
    return this.#form.type;
  }

  get flags(): number {
    return this.#form.flags;
  }

  get operation(): string {
    return requestOf(this.#operation).operation;
  }

  get object(): string {
    return requestOf(this.#operation).object;
  }

  get payload(): Uint8Array {
    fill(this.#form, this.#operation.object);
    return this.#form.payload;
  }
}

/** All of what `fill` does not put in: the same number is the same form. */
function formOf({ action, object }: RouteOperation): number {
  switch (object.kind) {
    case 'nexthop':
      return numberOf(FORM.nexthop, action, object.outInterface, 0, object.onlink);
    case 'route': {
      const { way, destination } = object;
      const { prefixLength } = destination;
      if (way === 'unreachable') return numberOf(FORM.unreachable, action, 0, prefixLength);
      if (way === 'nexthop') return numberOf(FORM.byNexthop, action, 0, prefixLength);
      if (way === 'other') throw new Error('a route that others made has no form');
      if (way === 'device') return numberOf(FORM.byDevice, action, object.outInterface, prefixLength);
      return numberOf(FORM.byGateway, action, object.outInterface, prefixLength, object.onlink);
    }
    case 'neighbour':
      return numberOf(FORM.neighbour, action, object.index);
    case 'fdb':
      return numberOf(FORM.fdb, action, object.index, 0, object.additions !== undefined);
  }
}

const ACTIONS: readonly RouteOperation['action'][] = ['add', 'replace', 'delete'];

/** Objects whose requests have the same attributes. */
const FORM = { nexthop: 0, unreachable: 1, byNexthop: 2, byGateway: 3, neighbour: 4, fdb: 5, byDevice: 6 } as const;

/**
 * One number of all that tells forms apart: nothing is allocated for each of thousands of operations.
 *
 * @param link index of an interface. @default none
 * @param prefixLength 0 to 128. @default none
 * @param flag what else there are two forms by
 */
function numberOf(
  kind: (typeof FORM)[keyof typeof FORM],
  action: RouteOperation['action'],
  link = 0,
  prefixLength = 0,
  flag = false,
): number {
  // Less than 64: seven kinds of three actions, with and without the flag.
  const small = (kind * ACTIONS.length + ACTIONS.indexOf(action)) * 2 + (flag ? 1 : 0);
  return (link * 256 + prefixLength) * 64 + small;
}

function fill(form: RequestForm, object: RouteObject): void {
  switch (object.kind) {
    case 'nexthop':
      form.setU32(NHA_ID[0], object.id);
      form.setBytes(NHA_GATEWAY[0], object.gateway.bytes);
      return;
    case 'route':
      form.setBytes(RTA_DST[0], object.destination.address.bytes);
      if (object.way === 'nexthop') form.setU32(RTA_NH_ID[0], object.id);
      else if (object.way === 'gateway') form.setBytes(RTA_GATEWAY[0], object.gateway.bytes);
      return;
    case 'neighbour':
      form.setBytes(NDA_DST[0], object.ip.bytes);
      form.setBytes(NDA_LLADDR[0], object.mac);
      return;
    case 'fdb':
      form.setBytes(NDA_LLADDR[0], object.mac);
      if (object.additions === undefined) form.setBytes(NDA_DST[0], object.remote!.bytes);
  }
}
