import { type Cidr, NodeplaneError, parseCidr } from '../core/index.ts';

/** Parses a CIDR of a Kubernetes object; undefined when it is none. */
export function tryParseCidr(text: string): Cidr | undefined {
  try {
    return parseCidr(text);
  } catch (error) {
    if (error instanceof NodeplaneError && error.code === 'ERR_ADDRESS_INVALID') return undefined;
    throw error;
  }
}
