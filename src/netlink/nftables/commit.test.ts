import { describe, expect, it } from 'vitest';
import { ack, answer, frame, refuse } from '../../../test/fakes/fake-netlink.ts';
import { encodeBody } from '../attribute-set.ts';
import { type NetlinkMessage, readMessages } from '../message.ts';
import type { BatchTransport } from '../transport.ts';
import { NFNL_SUBSYS_NFTABLES, NFT_MSG_NEWGEN, NFTA_GEN } from '../uapi/nf-tables.ts';
import { nfgenmsg, nfnlType } from '../uapi/nfnetlink.ts';
import { isStaleGeneration } from './commit-error.ts';
import { Committer } from './committer.ts';
import type { NftChange } from './object/model.ts';

/** A kernel that answers a batch as it is told. */
function transport(
  answers: (requests: readonly NetlinkMessage[]) => readonly (Uint8Array | 'overrun')[],
): BatchTransport & { readonly room: number[] } {
  const queue: (Uint8Array | 'overrun')[] = [];
  const room: number[] = [];
  const send = (data: Uint8Array) => void queue.push(...answers([...readMessages(Uint8Array.from(data))]));
  return {
    portId: 4711,
    room,
    send,
    sendAsync: async (data) => send(data),
    receive: () => queue.shift() as Uint8Array,
    receiveWaiting: () => queue.shift(),
    makeRoom: (bytes) => void room.push(bytes),
    onReadable: () => () => {},
    close: () => {},
  };
}

const chain = (name: string): NftChange => ({
  operation: 'add',
  object: { kind: 'chain', family: 'ip', table: 't', name },
});
const CHANGES = [chain('a'), chain('b')];

describe('a commit', () => {
  it('is done when its last change is acknowledged; late answers to others do not matter', async () => {
    const newGeneration = encodeBody(nfgenmsg, {}, NFTA_GEN, { NFTA_GEN_ID: 9 });
    const kernel = transport((requests) => [
      frame(refuse({ ...requests[1]!, sequence: 0 }, 2)),
      frame(answer(requests[1]!, nfnlType(NFNL_SUBSYS_NFTABLES, NFT_MSG_NEWGEN), newGeneration)),
      frame(ack(requests[2]!)),
    ]);
    const committer = new Committer(kernel);
    expect(committer.commit(CHANGES)).toMatchObject({ messages: 4, generation: 9 });
    expect(await committer.commitAsync(CHANGES)).toMatchObject({ messages: 4, generation: 9 });
    expect(committer.commit(CHANGES, { expectGeneration: 0xffff_ffff }).generation).toBe(9);
    expect(kernel.room[0]).toBeGreaterThan(100);
  });

  it('knows the generation behind the one it expected, which is never 0', () => {
    const committer = new Committer(transport((requests) => [frame(ack(requests[2]!))]));
    expect(committer.commit(CHANGES, { expectGeneration: 4 }).generation).toBe(5);
    expect(committer.commit(CHANGES, { expectGeneration: 0xffff_ffff }).generation).toBe(1);
  });

  it('fails with the first refusal and keeps the others, with the kernel’s words', () => {
    const committer = new Committer(
      transport((requests) => [
        frame(refuse(requests[1]!, 17, { text: 'chain exists' }), refuse(requests[2]!, 2), ack(requests[2]!)),
      ]),
    );
    expect(() => committer.commit(CHANGES)).toThrow(
      expect.objectContaining({
        message: 'nf_tables add chain "a" of table ip "t": file already exists (EEXIST): chain exists',
        change: CHANGES[0],
        refusals: [
          { errno: 17, extAck: 'chain exists', changeIndex: 0, elementIndex: undefined },
          { errno: 2, extAck: undefined, changeIndex: 1, elementIndex: undefined },
        ],
      }),
    );
  });

  it('says when the ruleset has moved on', () => {
    const committer = new Committer(transport((requests) => [frame(refuse(requests[0]!, 85))]));
    try {
      committer.commit(CHANGES, { expectGeneration: 3 });
      expect.unreachable();
    } catch (error) {
      expect(isStaleGeneration(error)).toBe(true);
      expect(error).toMatchObject({ errnoName: 'ERESTART', change: undefined });
    }
  });

  it.each([
    [['overrun' as const], 'its answers were lost (ENOBUFS)'],
    [[], 'the kernel did not answer'],
  ])('is in doubt without an answer', (answers, text) => {
    const committer = new Committer(transport(() => answers));
    expect(() => committer.commit(CHANGES)).toThrow(
      expect.objectContaining({ code: 'ERR_NETLINK_SOCKET', message: expect.stringContaining(text) }),
    );
  });
});
