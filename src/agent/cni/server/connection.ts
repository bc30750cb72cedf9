import type { Socket } from 'node:net';
import type { Clock, NodeplaneError } from '../../../core/index.ts';
import { descriptorOf, libc, receiveWithDescriptors, waitForMessage } from '../../../sys/index.ts';
import {
  decodeBody,
  decodeHeader,
  type PluginRequest,
  REQUEST_HEADER_LENGTH,
  type RequestHeader,
  unreadable,
} from './protocol.ts';

/** A request as it came over a connection. */
export interface ReceivedRequest extends PluginRequest {
  /** The pod's namespace, for the receiver to close. */
  readonly netns: number | undefined;
}

/**
 * Reads the request of a connection that nothing was read from so far (`pauseOnConnect`). Afterwards the socket flows, so
 * that it tells when the other side leaves.
 *
 * @throws ERR_CNI_REQUEST when it is unreadable, incomplete, or does not come in time; KernelError
 */
export async function readRequest(socket: Socket, clock: Clock, timeoutMs: number): Promise<ReceivedRequest> {
  const deadline = clock.now() + timeoutMs;
  const { header, netns } = await receiveHeader(socket, clock, deadline);
  try {
    const body = await readBody(socket, clock, header, deadline);
    return { ...decodeBody(header, body), netns };
  } catch (error) {
    if (netns !== undefined) libc().close(netns);
    throw error;
  }
}

/** The plugin sends right after it has connected: mostly it is only waiting for the processor that we occupy. */
const PATIENCE_MS = 1;

/**
 * The header comes with the descriptor, which node:net would lose; so it is received by hand. The plugin sends it right
 * after it has connected, hence it is there or about to come, sooner than any timer; if not, it is looked for again, less
 * and less often.
 */
async function receiveHeader(
  socket: Socket,
  clock: Clock,
  deadline: number,
): Promise<{ readonly header: RequestHeader; readonly netns: number | undefined }> {
  const bytes = Buffer.alloc(REQUEST_HEADER_LENGTH);
  waitForMessage(descriptorOf(socket), PATIENCE_MS);
  for (let waitMs = 0; ; waitMs = Math.min(50, 2 * waitMs + 1)) {
    const message = receiveWithDescriptors(descriptorOf(socket), bytes);
    if (message) return openHeader(bytes.subarray(0, message.length), message.descriptors);
    if (clock.now() >= deadline) throw unreadable('it did not come in time');
    await new Promise<void>((resolve) => void clock.setTimer(resolve, waitMs));
    if (socket.destroyed) throw unreadable('the connection ended');
  }
}

function openHeader(bytes: Uint8Array, descriptors: readonly number[]) {
  try {
    const header = decodeHeader(bytes);
    if (descriptors.length !== Number(header.hasDescriptor)) {
      throw unreadable(`${descriptors.length} descriptors came with it, announced was ${Number(header.hasDescriptor)}`);
    }
    return { header, netns: descriptors[0] };
  } catch (error) {
    for (const descriptor of descriptors) libc().close(descriptor);
    throw error;
  }
}

function readBody(socket: Socket, clock: Clock, header: RequestHeader, deadline: number): Promise<Buffer> {
  const body = Buffer.alloc(header.variablesLength + header.configLength);
  let length = 0;
  return new Promise((resolve, reject) => {
    const timer = clock.setTimer(() => finish(unreadable('it did not come in time')), deadline - clock.now());
    const onData = (chunk: Buffer) => {
      if (length + chunk.length > body.length) finish(unreadable('more came than was announced'));
      else {
        chunk.copy(body, length);
        length += chunk.length;
        if (length === body.length) finish();
      }
    };
    const onClose = () => finish(unreadable('the connection ended'));
    const finish = (error?: NodeplaneError) => {
      timer.cancel();
      socket.off('data', onData);
      socket.off('close', onClose);
      if (error) reject(error);
      else resolve(body);
    };
    socket.on('data', onData);
    socket.on('close', onClose);
    socket.resume();
    if (body.length === 0) finish();
  });
}
