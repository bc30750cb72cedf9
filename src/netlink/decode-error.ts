import { NodeplaneError } from '../core/index.ts';

/** The one error every decoder of this folder raises: what was decoded, what was wrong with it. */
export function decodeError(what: string, problem: string): NodeplaneError {
  return new NodeplaneError('ERR_NETLINK_DECODE', `Cannot decode ${what}: ${problem}`, { facts: { what } });
}
