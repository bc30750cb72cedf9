import { ByteWriter } from '../../src/core/index.ts';
import { appendMessage, type NetlinkRequest } from '../../src/netlink/index.ts';
import { NLM_F_ACK, NLM_F_REQUEST, NLMSG_HDRLEN } from '../../src/netlink/uapi/index.ts';

/** A request as the bytes a program sends for it, with sequence number and port ID 0, as hex. */
export function wireHex(request: NetlinkRequest): string {
  const writer = new ByteWriter();
  appendMessage(writer, {
    type: request.type,
    flags: NLM_F_REQUEST | NLM_F_ACK | request.flags,
    sequence: 0,
    portId: 0,
    payload: request.payload,
  });
  return Buffer.from(writer.written()).toString('hex');
}

/**
 * A captured message made comparable with `wireHex`: the sequence number, a clock in iproute2, becomes 0. `type` replaces
 * the message type where ours differs on purpose.
 */
export function capturedHex(hex: string, type?: number): string {
  const bytes = Buffer.from(hex, 'hex');
  bytes.writeUInt32LE(0, 8);
  if (type !== undefined) bytes.writeUInt16LE(type, 4);
  return bytes.toString('hex');
}

/** The body of a captured message, for decoders. */
export function capturedPayload(hex: string): Uint8Array {
  return Buffer.from(hex, 'hex').subarray(NLMSG_HDRLEN);
}
