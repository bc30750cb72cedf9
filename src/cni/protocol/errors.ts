import { type ErrorCode, errorText, NodeplaneError } from '../../core/index.ts';

/** The numbers of CNI errors: below 100 the specification's (section "Error"), from 100 on this plugin's own. */
export const CNI_ERROR = {
  INCOMPATIBLE_VERSION: 1,
  UNSUPPORTED_FIELD: 2,
  /** The message must name the variables. */
  INVALID_ENVIRONMENT: 4,
  IO_FAILURE: 5,
  DECODING_FAILURE: 6,
  INVALID_NETWORK_CONFIG: 7,
  /** Of the reference library: CNI_NETNS is the namespace the plugin itself runs in. */
  INVALID_NETNS: 8,
  TRY_AGAIN_LATER: 11,
  /** Of STATUS: an ADD would fail. */
  PLUGIN_NOT_AVAILABLE: 50,
  /** Of STATUS: as 50, and pods that run may have lost connections. */
  LIMITED_CONNECTIVITY: 51,
  EXHAUSTED: 102,
  HOST_PORT_IN_USE: 103,
  INTERFACE_EXISTS: 104,
  KERNEL_REFUSED: 105,
  BRIDGE_UNUSABLE: 106,
  /** An address that was asked for cannot be given. */
  ADDRESS_UNAVAILABLE: 107,
  /** CHECK: the kernel does not hold what ADD made. */
  CHECK_FAILED: 108,
  /** A plugin that this one runs failed without saying why. */
  DELEGATE_FAILED: 109,
  /** What a pod asks for by annotation is not allowed, or cannot be. */
  POD_REFUSED: 110,
  INTERNAL: 999,
} as const;

export type CniErrorCode = (typeof CNI_ERROR)[keyof typeof CNI_ERROR];

/** A failure as the CNI protocol reports it. `message` is the short text, which runtimes show to users. */
export class CniError extends NodeplaneError {
  /** One of `CNI_ERROR`, or whatever a plugin that this one runs answered. */
  readonly cniCode: number;
  readonly details: string;

  constructor(cniCode: number, message: string, options: { details?: string; cause?: unknown } = {}) {
    super('ERR_CNI', message, { facts: { cniCode }, cause: options.cause });
    this.name = 'CniError';
    this.cniCode = cniCode;
    this.details = options.details ?? '';
  }
}

const CODE_OF: Partial<Record<ErrorCode, CniErrorCode>> = {
  ERR_IPAM_CONFIG: CNI_ERROR.INVALID_NETWORK_CONFIG,
  ERR_IPAM_EXHAUSTED: CNI_ERROR.EXHAUSTED,
  ERR_IPAM_DUPLICATE: CNI_ERROR.INTERFACE_EXISTS,
  ERR_IPAM_REQUEST: CNI_ERROR.ADDRESS_UNAVAILABLE,
  ERR_IPAM_STORE: CNI_ERROR.IO_FAILURE,
  ERR_LOCK_TIMEOUT: CNI_ERROR.TRY_AGAIN_LATER,
  ERR_UNSAFE_PATH: CNI_ERROR.IO_FAILURE,
  ERR_NETLINK_ACK: CNI_ERROR.KERNEL_REFUSED,
  ERR_SYSCALL: CNI_ERROR.KERNEL_REFUSED,
};

/** Any error as a CNI error: our codes by the table above, everything else as internal. */
export function toCniError(error: unknown): CniError {
  if (error instanceof CniError) return error;
  if (!(error instanceof NodeplaneError)) {
    return new CniError(CNI_ERROR.INTERNAL, `Internal error: ${errorText(error)}`, { cause: error });
  }
  const cause = error.cause === undefined ? '' : `${errorText(error.cause)} `;
  return new CniError(CODE_OF[error.code] ?? CNI_ERROR.INTERNAL, error.message, {
    details: `${cause}(${error.code})`,
    cause: error,
  });
}

/** The error object for stdout. */
export function errorJson(error: CniError, cniVersion: string): string {
  const { cniCode, message, details } = error;
  return `${JSON.stringify({ cniVersion, code: cniCode, msg: message, ...(details && { details }) }, undefined, 2)}\n`;
}
