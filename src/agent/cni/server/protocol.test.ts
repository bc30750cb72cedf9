import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { NodeplaneError } from '../../../core/index.ts';
import { decodeHeader, decodeKeptRequest, encodeAnswer, refusal } from './protocol.ts';

/** As the plugin writes it; `flags` 1 announces a descriptor. */
function request(variables: string, config: string, { version = 1, flags = 0 } = {}): Buffer {
  const header = Buffer.alloc(16);
  header.write('NPCQ');
  header.writeUInt16LE(version, 4);
  header.writeUInt16LE(flags, 6);
  header.writeUInt32LE(Buffer.byteLength(variables), 8);
  header.writeUInt32LE(Buffer.byteLength(config), 12);
  return Buffer.concat([header, Buffer.from(variables), Buffer.from(config)]);
}

describe('a request', () => {
  it('is variables and a configuration', () => {
    // Kept by `CNI_COMMAND=DEL CNI_ARGS='A=b;C=ü' CNI_CONTAINERID=c nodeplane-cni <<< '{}'` without an agent.
    const bytes = Buffer.from(
      '4e504351010000003400000003000000434e495f434f4d4d414e443d44454c00434e495f415247533d413d623b433dc3bc00434e495f434f4e5441494e455249443d63007b7d0a',
      'hex',
    );
    expect(decodeKeptRequest(bytes)).toEqual({
      environment: { CNI_COMMAND: 'DEL', CNI_ARGS: 'A=b;C=ü', CNI_CONTAINERID: 'c' },
      config: '{}\n',
    });
    expect(decodeHeader(bytes.subarray(0, 16)).hasDescriptor).toBe(false);
    expect(decodeHeader(request('', '', { flags: 1 })).hasDescriptor).toBe(true);
  });

  it('takes the first of two variables of the same name, and any name', () => {
    const { environment } = decodeKeptRequest(request('CNI_A=1\0CNI_A=2\0CNI___proto__=x\0', ''));
    expect(Object.entries(environment)).toEqual([
      ['CNI_A', '1'],
      ['CNI___proto__', 'x'],
    ]);
  });

  it.each([
    ['nothing', Buffer.alloc(0), 'its header has 0 bytes'],
    ['other bytes', Buffer.alloc(16), 'it does not begin as one'],
    ['another version', request('', '', { version: 2 }), 'it has version 2 of the protocol, known is 1'],
    ['a body too short', request('', '{}').subarray(0, 17), 'its body has 1 bytes'],
    ['a variable that is none', request('PATH=/\0', ''), '"PATH=/" is no CNI_ variable'],
    ['a variable without end', request('CNI_A=1', ''), 'its last variable does not end'],
  ])('is refused when it is %s', (_, bytes, why) => {
    expect(() => decodeKeptRequest(bytes)).toThrow(`Cannot read the request: ${why}`);
  });

  it('is refused when it is longer than any can be, before anything is allocated', () => {
    const header = request('', '');
    header.writeUInt32LE(0xffffffff, 12);
    expect(() => decodeHeader(header)).toThrow('4294967295 of configuration are too many');
  });

  it('decodes to a request or an error of its own, whatever the bytes', () => {
    const valid = request('CNI_COMMAND=ADD\0CNI_ARGS=\0', '{"name":"n"}');
    const bent = fc.array(fc.tuple(fc.nat(valid.length - 1), fc.nat(255)), { maxLength: 6 }).map((changes) => {
      const bytes = Buffer.from(valid);
      for (const [at, value] of changes) bytes[at] = value;
      return bytes;
    });
    fc.assert(
      fc.property(fc.oneof(fc.uint8Array({ maxLength: 200 }), bent), (bytes) => {
        try {
          expect(decodeKeptRequest(bytes)).toMatchObject({ config: expect.any(String) });
        } catch (error) {
          expect(error).toBeInstanceOf(NodeplaneError);
          expect(error).toMatchObject({ code: 'ERR_CNI_REQUEST' });
        }
      }),
      { numRuns: 2000 },
    );
  });
});

it('an answer is status, length and text', () => {
  expect(encodeAnswer({ exitCode: 1, stdout: 'ü' }).toString('hex')).toBe('4e5043410100010002000000c3bc');
  expect(JSON.parse(refusal(11, 'later', 'why').stdout)).toEqual({
    cniVersion: '1.1.0',
    code: 11,
    msg: 'later',
    details: 'why',
  });
});
