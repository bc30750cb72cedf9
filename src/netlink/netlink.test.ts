import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type Answerer, ack, answer, done, FakeNetlink, frame, refuse } from '../../test/fakes/fake-netlink.ts';
import { KernelError, NodeplaneError } from '../core/index.ts';
import type { NetlinkMessage, NetlinkRequest } from './message.ts';
import { Netlink } from './netlink.ts';
import {
  NLM_F_ACK,
  NLM_F_DUMP,
  NLM_F_DUMP_INTR,
  NLM_F_MULTI,
  NLMSG_DONE,
  NLMSG_ERROR,
  NLMSG_NOOP,
  NLMSG_OVERRUN,
} from './uapi/netlink.ts';

const EEXIST = 17;
const ENODEV = 19;
const PART = NLM_F_MULTI;

const request = (object: string, flags = 0): NetlinkRequest => ({
  type: 16,
  flags,
  operation: 'RTM_NEWLINK',
  object,
  payload: Buffer.from(object.padEnd(4)),
});

const talk = (answerer: Answerer) => {
  const fake = new FakeNetlink(answerer);
  const sleeps: number[] = [];
  return { fake, sleeps, netlink: new Netlink(fake, 1, (ms) => void sleeps.push(ms)) };
};

const code = (expected: string, message: string | RegExp = '') =>
  expect.objectContaining({
    code: expected,
    message: typeof message === 'string' ? expect.stringContaining(message) : expect.stringMatching(message),
  });

const bytes = (payloads: readonly Uint8Array[]) => payloads.map((payload) => [...payload]);

describe('execute', () => {
  it('sends all requests in one datagram, numbered, and has the last one acknowledged', () => {
    const { fake, netlink } = talk((requests) => [frame(ack(requests.at(-1)!))]);
    netlink.execute(request('a', 0x600), request('bc'), request('d'));
    netlink.execute(request('e'));
    expect(
      fake.sent.map((datagram) => datagram.map(({ sequence, flags, portId }) => [sequence, flags, portId])),
    ).toEqual([
      [
        [1, 0x601, 4711],
        [2, 1, 4711],
        [3, 5, 4711],
      ],
      [[4, 5, 4711]],
    ]);
    expect(fake.requestCount).toBe(4);
  });

  it('can tell what became of each request instead', () => {
    const { fake, netlink } = talk(([, second, third]) => [frame(refuse(second!, 2)), frame(refuse(third!, 17))]);
    const outcomes = netlink.attempt([request('a'), request('b'), request('c')]);
    expect(outcomes.map((error) => error?.errnoName)).toEqual([undefined, 'ENOENT', 'EEXIST']);
    expect(netlink.attempt([])).toEqual([]);
    expect(fake.sent).toHaveLength(1);
  });

  it('sends thousands in few datagrams, and tells which one was refused', () => {
    const { fake, netlink } = talk((requests) =>
      requests.flatMap((r) => {
        if (r.sequence === 4001) return [frame(refuse(r, EEXIST))];
        return (r.flags & NLM_F_ACK) === 0 ? [] : [frame(ack(r))];
      }),
    );
    const outcomes = netlink.attempt(Array.from({ length: 5000 }, (_, i) => request(String(i))));
    expect(fake.sent.map((datagram) => datagram.length)).toEqual([2000, 2000, 1000]);
    expect(outcomes).toHaveLength(5000);
    expect(outcomes.flatMap((error, i) => (error ? [[i, error.message]] : []))).toEqual([
      [4000, 'RTM_NEWLINK 4000: file already exists (EEXIST)'],
    ]);
  });

  it('sends nothing for nothing', () => {
    const { fake, netlink } = talk(() => []);
    netlink.execute();
    expect(fake.sent).toEqual([]);
  });

  it('throws the first refusal with all the kernel said, after reading all answers', () => {
    const { netlink } = talk(([, second, third]) => [
      frame(refuse(second!, EEXIST, { text: 'no, thanks', offset: 36 })),
      frame(refuse(third!, ENODEV)),
    ]);
    let caught: unknown;
    try {
      netlink.execute(request('first'), request('second'), request('third'));
    } catch (error) {
      caught = error;
    }
    expect(caught).toBeInstanceOf(KernelError);
    expect(caught).toMatchObject({
      code: 'ERR_NETLINK_ACK',
      message: 'RTM_NEWLINK second: file already exists (EEXIST): no, thanks',
      errnoName: 'EEXIST',
      extAck: 'no, thanks',
      facts: { operation: 'RTM_NEWLINK', object: 'second', offset: 36 },
    });
  });

  it('reads the text behind an echoed request and names a missing attribute', () => {
    // Without NLM_F_CAPPED the request's payload (here 8 bytes) comes before the attributes: MISS_TYPE (5) 3.
    const { netlink } = talk(([r]) => {
      const echoed = Buffer.from('18000000' + '10000500' + '0000000000000000' + '0102030405060708', 'hex');
      const payload = Buffer.concat([Buffer.from('eaffffff', 'hex'), echoed, Buffer.from('0800050003000000', 'hex')]);
      return [frame({ ...r!, type: NLMSG_ERROR, flags: 0x200, payload })];
    });
    expect(() => netlink.execute(request('x'))).toThrow(
      'RTM_NEWLINK x: invalid argument (EINVAL): attribute 3 is missing',
    );
  });

  it('drops what an earlier failure left over', () => {
    const kept: NetlinkMessage[] = [];
    const { netlink } = talk((requests) => {
      kept.push(...requests);
      // The first conversation gets no answer in time; it arrives, as a refusal, before that of the second.
      return requests[0]!.sequence === 1
        ? []
        : [frame(refuse(kept[0]!, ENODEV)), frame(refuse(kept[1]!, ENODEV), ack(kept[2]!))];
    });
    expect(() => netlink.execute(request('a'), request('b'))).toThrow(code('ERR_NETLINK_SOCKET'));
    netlink.execute(request('c'));
    expect(kept).toHaveLength(3);
  });

  it.each<[string, (r: NetlinkMessage) => NetlinkMessage, string, string]>([
    [
      'a number never sent',
      (r) => ({ ...ack(r), sequence: 2 }),
      'ERR_NETLINK_SOCKET',
      'sequence number 2, which was never sent',
    ],
    ['another port', (r) => ({ ...ack(r), portId: 1 }), 'ERR_NETLINK_SOCKET', 'addressed to port 1, this is port 4711'],
    ['NLMSG_OVERRUN', (r) => ({ ...ack(r), type: NLMSG_OVERRUN }), 'ERR_NETLINK_SOCKET', 'NLMSG_OVERRUN'],
    ['a short acknowledgement', (r) => ({ ...ack(r), payload: new Uint8Array(3) }), 'ERR_NETLINK_DECODE', 'nlmsgerr'],
    [
      'a positive error',
      (r) => ({ ...ack(r), payload: Uint8Array.of(1, 0, 0, 0) }),
      'ERR_NETLINK_DECODE',
      'the error is 1',
    ],
    ['nothing but noise', (r) => ({ ...ack(r), type: NLMSG_NOOP }), 'ERR_NETLINK_SOCKET', 'no more'],
  ])('refuses %s', (_, reply, expected, message) => {
    const { netlink } = talk(([r]) => [frame(reply(r!))]);
    expect(() => netlink.execute(request('x'))).toThrow(code(expected, message));
  });

  it('numbers on across 2^32', () => {
    const fake = new FakeNetlink((requests) => [frame(...requests.map((r) => ack(r)))]);
    const netlink = new Netlink(fake, 0xffff_fffe);
    netlink.execute(request('a'), request('b'), request('c'));
    expect(fake.sent[0]!.map((r) => r.sequence)).toEqual([0xffff_fffe, 0xffff_ffff, 0]);
    netlink.close();
    expect(fake.closed).toBe(true);
  });
});

describe('exchange', () => {
  it('tells what became of changes, and what questions behind them were answered', () => {
    const { fake, netlink } = talk(([a, b, c, d]) => [
      frame(ack(a!)),
      frame(refuse(b!, ENODEV)),
      frame(answer(c!, 16, Uint8Array.of(1, 2))),
      frame(refuse(d!, ENODEV)),
    ]);
    const { refusals, answers } = netlink.exchange([request('a'), request('b')], [request('c'), request('d')]);
    expect(refusals).toEqual([undefined, expect.objectContaining({ object: 'b', errnoName: 'ENODEV' })]);
    expect(answers).toEqual([Uint8Array.of(1, 2), expect.objectContaining({ object: 'd', errnoName: 'ENODEV' })]);
    expect(fake.sent).toHaveLength(1);
    expect(fake.sent[0]!.map(({ flags }) => (flags & NLM_F_ACK) !== 0)).toEqual([false, true, false, false]);
  });

  it('sends nothing for nothing', () => {
    const { fake, netlink } = talk(() => []);
    expect(netlink.exchange([], [])).toEqual({ refusals: [], answers: [] });
    expect(fake.sent).toEqual([]);
  });
});

describe('query', () => {
  it('gives a copy of the answer', () => {
    const datagrams: Uint8Array[] = [];
    const { netlink } = talk(([r]) => {
      datagrams.push(frame(answer(r!, 16, Uint8Array.of(1, 2, 3))));
      return datagrams;
    });
    const payload = netlink.query(request('x'));
    datagrams[0]!.fill(0);
    expect([...payload]).toEqual([1, 2, 3]);
  });

  it('throws a refusal, and tells an acknowledgement from an answer', () => {
    expect(() => talk(([r]) => [frame(refuse(r!, ENODEV))]).netlink.query(request('x'))).toThrow(/ENODEV/);
    expect(() => talk(([r]) => [frame(ack(r!))]).netlink.query(request('x'))).toThrow(
      code('ERR_NETLINK_SOCKET', 'RTM_NEWLINK x was acknowledged without an answer'),
    );
  });
});

describe('dump', () => {
  it('collects all parts of all datagrams', () => {
    const { fake, netlink } = talk(([r]) => [
      frame(answer(r!, 16, Uint8Array.of(1), PART), answer(r!, 16, Uint8Array.of(2), PART)),
      frame(answer(r!, 16, Uint8Array.of(3), PART)),
      frame(done(r!)),
    ]);
    expect(bytes(netlink.dump(request('all')))).toEqual([[1], [2], [3]]);
    expect(fake.sent[0]![0]!.flags).toBe(0x301);
  });

  it.each(['a part', 'the end'])('reads again when %s is flagged as interrupted', (where) => {
    let readings = 0;
    const { fake, netlink, sleeps } = talk(([r]) => {
      const interrupted = ++readings <= 5 ? NLM_F_DUMP_INTR : 0;
      const part = answer(r!, 16, Uint8Array.of(readings), PART | (where === 'a part' ? interrupted : 0));
      return [
        frame(part),
        frame(answer(r!, 16, Uint8Array.of(0), PART), done(r!, 0, where === 'the end' ? interrupted : 0)),
      ];
    });
    expect(bytes(netlink.dump(request('all')))).toEqual([[6], [0]]);
    expect(fake.requestCount).toBe(6);
    expect(sleeps).toEqual([1, 2, 4, 8, 16]);
  });

  it('of what changes all the time ends after three readings, with all that any of them told', () => {
    let readings = 0;
    const { fake, netlink, sleeps } = talk(([r]) => [
      frame(answer(r!, 16, Uint8Array.of(++readings), PART), done(r!, 0, readings < 4 ? NLM_F_DUMP_INTR : 0)),
    ]);
    expect(bytes(netlink.dumpChanging(request('all')))).toEqual([[1], [2], [3]]);
    expect([fake.requestCount, sleeps]).toEqual([3, [1, 2]]);
    expect(bytes(netlink.dumpChanging(request('all')))).toEqual([[4]]);
  });

  it('gives up after five repetitions', () => {
    const { fake, netlink } = talk(([r]) => [frame(done(r!, 0, NLM_F_DUMP_INTR))]);
    expect(() => netlink.dump(request('all'))).toThrow(code('ERR_NETLINK_DUMP_INTERRUPTED'));
    expect(fake.requestCount).toBe(6);
  });

  it('in turns of the event loop is complete, whatever else is asked between two of them', async () => {
    const { netlink } = talk(([r]) =>
      (r!.flags & NLM_F_DUMP) === NLM_F_DUMP
        ? [...r!.payload].map((byte) => frame(answer(r!, 16, Uint8Array.of(byte), PART))).concat(frame(done(r!)))
        : [frame(answer(r!, 16, Uint8Array.of(9)))],
    );
    const asked: number[][] = [];
    const between = async () => {
      asked.push([...netlink.query(request('one'))], ...bytes(netlink.dump(request('\x05\x06\x07\x08'))));
    };
    const first = netlink.dumpAsync(request('\x01\x02\x03\x04'), between);
    const second = netlink.dumpAsync(request('\x01\x01\x01\x01'), () => Promise.resolve());
    expect(bytes(await first)).toEqual([[1], [2], [3], [4]]);
    expect(bytes(await second)).toEqual([[1], [1], [1], [1]]);
    expect(asked).toEqual([[9], [5], [6], [7], [8]]);
  });

  it('throws the error of NLMSG_DONE and of NLMSG_ERROR', () => {
    expect(() => talk(([r]) => [frame(done(r!, ENODEV))]).netlink.dump(request('all'))).toThrow(/ENODEV/);
    expect(() => talk(([r]) => [frame(refuse(r!, EEXIST))]).netlink.dump(request('all'))).toThrow(/EEXIST/);
  });

  it('takes an empty NLMSG_DONE for success', () => {
    const { netlink } = talk(([r]) => [frame({ ...done(r!), type: NLMSG_DONE, payload: new Uint8Array() })]);
    expect(netlink.dump(request('all'))).toEqual([]);
  });

  it('reads a listing that broke to its end before the next request, which the kernel would refuse', () => {
    const pendingAtSend: number[] = [];
    const { fake, netlink } = talk((requests) => {
      pendingAtSend.push(fake.pending);
      const [r] = requests;
      if (r!.sequence !== 1) return [frame(...requests.map((each) => ack(each)))];
      return [Uint8Array.of(1, 2, 3), frame(answer(r!, 16, Uint8Array.of(1), PART)), frame(done(r!))];
    });
    expect(() => netlink.dump(request('all'))).toThrow(code('ERR_NETLINK_DECODE', '3 bytes are left'));
    netlink.execute(request('next'));
    expect(pendingAtSend).toEqual([0, 0]);
    expect(fake.pending).toBe(0);
  });
});

describe('any answers at all', () => {
  const noise = fc.uint8Array({ maxLength: 120 });
  /** Well-formed frames with numbers near the right ones, then bent. */
  const bent = fc.record({
    type: fc.constantFrom(1, 2, 3, 4, 16, 17),
    flags: fc.nat(0xffff),
    sequence: fc.nat(4),
    portId: fc.constantFrom(4711, 0),
    payload: fc.oneof(noise, fc.constant(new Uint8Array(20)), fc.constant(new Uint8Array(4))),
    flip: fc.option(fc.tuple(fc.nat(), fc.nat(255))),
  });
  const datagrams = fc.array(
    fc.oneof(
      noise,
      bent.map(({ flip, ...message }) => {
        const datagram = frame(message);
        if (flip) datagram[flip[0] % datagram.length]! ^= flip[1];
        return datagram;
      }),
    ),
    { maxLength: 8 },
  );

  it('end in a result or a NodeplaneError, whatever is asked', () => {
    const ask = fc.constantFrom<((netlink: Netlink) => unknown)[]>(
      (netlink) => netlink.execute(request('a'), request('b')),
      (netlink) => netlink.query(request('a')),
      (netlink) => netlink.dump(request('a')),
    );
    fc.assert(
      fc.property(datagrams, fc.array(ask, { minLength: 1, maxLength: 3 }), (answers, questions) => {
        const { netlink } = talk(() => answers);
        for (const question of questions) {
          try {
            question(netlink);
          } catch (error) {
            expect(error).toBeInstanceOf(NodeplaneError);
            expect((error as NodeplaneError).code).toMatch(/^ERR_NETLINK_/);
          }
        }
      }),
      { numRuns: 2000 },
    );
  });
});
