import { NodeplaneError } from '../../core/index.ts';
import { decodeAcknowledgement } from '../answers.ts';
import { type NetlinkMessage, readMessages } from '../message.ts';
import type { BatchTransport } from '../transport.ts';
import { NLMSG_ERROR } from '../uapi/netlink.ts';
import { NFNL_SUBSYS_NFTABLES, NFT_MSG_NEWGEN } from '../uapi/nf-tables.ts';
import { nfnlType } from '../uapi/nfnetlink.ts';
import { type Batch, elementAt } from './batch.ts';
import { NftCommitError, type NftRefusal } from './commit-error.ts';
import type { NftChange } from './object/model.ts';
import { decodeGeneration } from './object/object-decode.ts';

/** One sendmsg of a netlink socket takes its limit less this (netlink_sendmsg); the rest is the kernel's bookkeeping. */
const ROOM_BESIDE = 4096;

/**
 * Makes room for a batch in the socket's send queue: it must go in one sendmsg, because its end belongs to its begin.
 */
export function makeRoomFor(transport: BatchTransport, batch: Batch): void {
  transport.makeRoom(batch.bytes.length + ROOM_BESIDE);
}

/**
 * Reads the answers to a batch that was sent. They wait already: the kernel did its work inside sendmsg.
 *
 * @param firstSequence the sequence number of the batch's begin
 * @returns the new generation
 * @throws NftCommitError when something was refused; ERR_NETLINK_SOCKET when there is no word of success
 */
export function readAnswers(
  transport: BatchTransport,
  batch: Batch,
  changes: readonly NftChange[],
  firstSequence: number,
): number | undefined {
  const refusals: NftRefusal[] = [];
  let generation: number | undefined;
  let acknowledged = false;
  let overrun = false;
  for (let next = transport.receiveWaiting(); next !== undefined; next = transport.receiveWaiting()) {
    if (next === 'overrun') {
      overrun = true;
      continue;
    }
    for (const message of readMessages(next)) {
      const offset = (message.sequence - firstSequence) | 0;
      // Answers to an earlier batch that nobody read any more.
      if (offset < 0 || offset >= batch.messages) continue;
      if (message.type === NLMSG_ERROR) {
        const refusal = readRefusal(message, offset, batch);
        if (refusal) refusals.push(refusal);
        else acknowledged = true;
      } else if (message.type === nfnlType(NFNL_SUBSYS_NFTABLES, NFT_MSG_NEWGEN)) {
        generation = decodeGeneration(message.payload).generation;
      }
    }
  }
  if (refusals.length > 0) throw new NftCommitError(changes, refusals);
  if (!acknowledged && generation === undefined) {
    const found = overrun ? 'its answers were lost (ENOBUFS)' : 'the kernel did not answer';
    throw new NodeplaneError('ERR_NETLINK_SOCKET', `Cannot tell whether the nf_tables transaction was done: ${found}`);
  }
  return generation;
}

/** Undefined for an acknowledgement. */
function readRefusal(message: NetlinkMessage, offset: number, batch: Batch): NftRefusal | undefined {
  const { errno, extAck, offset: at } = decodeAcknowledgement(message);
  if (errno === 0) return undefined;
  const origin = batch.origins[offset - 1];
  if (!origin) return { errno, extAck, changeIndex: undefined, elementIndex: undefined };
  const end = batch.origins[offset]?.start ?? batch.bytes.length;
  const within = at === undefined ? undefined : elementAt(batch.bytes.subarray(origin.start, end), at);
  return {
    errno,
    extAck,
    changeIndex: origin.change,
    elementIndex: within === undefined ? undefined : origin.firstElement + within,
  };
}
