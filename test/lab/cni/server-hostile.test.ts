import { spawnSync } from 'node:child_process';
import { readdirSync, readlinkSync, symlinkSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Agent } from '../lab.ts';
import { createNamespace, removeAll } from '../namespace.ts';
import { snapshot } from './fixture.ts';
import { createServedNode, installedConfig } from './served-node.ts';

/** Set NODEPLANE_FUZZ_SECONDS for a long run. */
const FUZZ_MS = 1000 * Number(process.env.NODEPLANE_FUZZ_SECONDS ?? 3);

const PATIENCE_MS = 200;
/** Each of the agent's threads for requests, up to eight, keeps five open to the kernel. */
const KEPT_SOCKETS = 8 * 5;

const served = createServedNode();
const pod = createNamespace('pod');
let agent: Agent;

beforeAll(async () => {
  agent = await served.startAgent();
  // What the first pod brings with it is there from now on, and the bridge has a carrier.
  expect(await served.call('ADD', createNamespace('stays'))).toMatchObject({ status: 0 });
  expect(await served.call('ADD', pod)).toMatchObject({ status: 0 });
  expect(await served.call('DEL', pod)).toMatchObject({ status: 0 });
});
afterAll(removeAll);

/** How many sockets, namespaces and files the agent has open; its threads bring other descriptors with them. */
function descriptors(): number {
  const folder = `/proc/${agent.pid}/fd`;
  return readdirSync(folder).filter((descriptor) => {
    try {
      return /^(socket:|net:|\/)/.test(readlinkSync(join(folder, descriptor)));
    } catch {
      return false; // closed meanwhile
    }
  }).length;
}

const state = () => snapshot([served.node.namespace, pod], served.dataDir);

/** Sends bytes; resolves to what came back. Leaves when nothing comes, as for a request that lacks its end. */
function exchange(bytes: Uint8Array): Promise<Buffer> {
  return new Promise((resolve) => {
    const answer: Buffer[] = [];
    const socket = connect(served.socket, () => socket.write(bytes));
    const leave = setTimeout(() => socket.destroy(), PATIENCE_MS);
    socket.on('data', (chunk) => answer.push(chunk));
    socket.on('error', () => {});
    socket.on('close', () => {
      clearTimeout(leave);
      resolve(Buffer.concat(answer));
    });
  });
}

function request(environment: Readonly<Record<string, string>>, config: string): Buffer {
  const variables = Buffer.from(
    Object.entries(environment)
      .map(([name, value]) => `${name}=${value}\0`)
      .join(''),
  );
  const header = Buffer.alloc(16);
  header.write('NPCQ');
  header.writeUInt16LE(1, 4);
  header.writeUInt32LE(variables.length, 8);
  header.writeUInt32LE(Buffer.byteLength(config), 12);
  return Buffer.concat([header, variables, Buffer.from(config)]);
}

/** Nothing, or one whole answer: with status 1 an error object of the specification. */
function expectAnswer(bytes: Buffer): void {
  if (bytes.length === 0) return;
  expect(bytes.toString('latin1', 0, 4)).toBe('NPCA');
  expect(bytes.length).toBe(12 + bytes.readUInt32LE(8));
  const text = bytes.toString('utf8', 12);
  if (bytes.readUInt16LE(6) === 0) return;
  expect(JSON.parse(text)).toMatchObject({ code: expect.any(Number), msg: expect.any(String) });
}

const TRICKS = [
  '',
  '..',
  '../../etc',
  '/',
  'a/b',
  'x\n',
  '%n',
  'ü',
  '-',
  'eth0',
  'c1',
  '\u202e',
  'a'.repeat(300),
  'null',
];
const trick = fc
  .oneof(fc.constantFrom(...TRICKS), fc.string({ maxLength: 20 }))
  .map((text) => text.replaceAll('\0', ''));
const jsonTrick = fc.oneof(
  trick,
  fc.json().map((text) => JSON.parse(text) as unknown),
);

/** Requests that look right and are not: something wrong is put into each, so that none may change anything. */
const crooked = fc
  .record({
    verb: fc.constantFrom('ADD', 'DEL', 'CHECK', 'GC', 'STATUS', 'VERSION', 'what'),
    id: trick,
    ifname: trick,
    netns: trick,
    args: trick,
    name: jsonTrick,
    change: fc.dictionary(
      fc.constantFrom(
        'cniVersion',
        'ipam',
        'type',
        'bridge',
        'mtu',
        'vlan',
        'runtimeConfig',
        'args',
        'prevResult',
        'cni.dev/valid-attachments',
      ),
      jsonTrick,
    ),
  })
  .map(({ verb, id, ifname, netns, args, name, change }) =>
    request(
      {
        CNI_COMMAND: verb,
        CNI_CONTAINERID: id,
        CNI_IFNAME: ifname,
        CNI_NETNS: netns,
        CNI_ARGS: args,
        CNI_PATH: '/nowhere',
      },
      JSON.stringify({ ...installedConfig(served.conflist), name, ...change }),
    ),
  );

const bent = fc
  .tuple(crooked, fc.array(fc.tuple(fc.nat(), fc.nat(255)), { minLength: 1, maxLength: 5 }))
  .map(([bytes, changes]) => {
    for (const [at, value] of changes) bytes[at % bytes.length] = value;
    return bytes;
  });

describe('the CNI server', () => {
  it('answers anything with an error of the specification or not at all, and changes nothing', {
    timeout: FUZZ_MS + 60_000,
  }, async () => {
    const before = state();
    const open = descriptors();
    const until = Date.now() + FUZZ_MS;
    const anything = fc.oneof(fc.uint8Array({ maxLength: 300 }), crooked, bent);
    let answered = 0;
    await fc.assert(
      fc.asyncProperty(fc.array(anything, { minLength: 8, maxLength: 8 }), async (requests) => {
        if (Date.now() > until) return;
        for (const answer of await Promise.all(requests.map(exchange))) {
          if (answer.length > 0) answered++;
          expectAnswer(answer);
        }
      }),
      { numRuns: 1_000_000, interruptAfterTimeLimit: FUZZ_MS, endOnFailure: true },
    );
    expect(answered).toBeGreaterThan(50);
    expect(state()).toEqual(before);
    await expect.poll(descriptors).toBeLessThanOrEqual(open + KEPT_SOCKETS);
    expect(await served.call('STATUS')).toMatchObject({ status: 0 });
  });

  it('does not wait for others because one says nothing', async () => {
    const silent = Array.from({ length: 50 }, () => connect(served.socket).on('error', () => {}));
    const halves = Array.from({ length: 50 }, () => {
      const socket = connect(served.socket, () => socket.write(request({ CNI_COMMAND: 'ADD' }, '{}').subarray(0, 20)));
      return socket.on('error', () => {});
    });
    expect(await served.call('ADD', pod)).toMatchObject({ status: 0 });
    expect(await served.call('DEL', pod)).toMatchObject({ status: 0 });
    for (const socket of [...silent, ...halves]) socket.destroy();
  });

  it('refuses lengths no request has without waiting for the bytes', async () => {
    const bytes = request({}, '');
    bytes.writeUInt32LE(0x7fffffff, 12);
    const answer = await exchange(bytes);
    expect(JSON.parse(answer.toString('utf8', 12))).toMatchObject({
      code: 6,
      msg: expect.stringContaining('too many'),
    });
  });
});

describe('the plugin on the host', () => {
  it('refuses a configuration or variables that no runtime sends', async () => {
    const long = await served.call('STATUS', undefined, { config: ' '.repeat((2 << 20) + 1) });
    expect(long).toMatchObject({ status: 1, json: { code: 5, msg: expect.stringContaining('longer than 2 MiB') } });
    const whole = await served.call('STATUS', undefined, {
      config: JSON.stringify(installedConfig(served.conflist)).padEnd(2 << 20),
    });
    expect(whole).toMatchObject({ status: 0 });
    const arg = 'x'.repeat(100_000);
    const env = { CNI_A: arg, CNI_B: arg, CNI_C: arg };
    expect(await served.call('STATUS', undefined, { env })).toMatchObject({ status: 1, json: { code: 4 } });
    const binary = await served.call('STATUS', undefined, { env: { CNI_A: '\u202e"\\\n' } });
    expect(binary).toMatchObject({ status: 0 });
  });

  it('has no memory errors, whatever it is given', () => {
    const source = new URL('../../../src/cni/shim/nodeplane-cni.c', import.meta.url).pathname;
    const program = join(served.folder, 'sanitized');
    const flags = ['-g', '-O1', '-Wall', '-Wextra', '-Werror', '-fsanitize=address,undefined', '-fno-sanitize-recover'];
    expect(spawnSync('cc', [...flags, source, '-o', program], { encoding: 'utf8' })).toMatchObject({ status: 0 });
    const loopback = join(served.folder, 'loopback');
    symlinkSync(program, loopback);
    const run = (path: string, env: Readonly<Record<string, string>>, input: string | Uint8Array) => {
      const { status, stdout, stderr } = spawnSync(path, { env, input, encoding: 'utf8' });
      expect(stderr, JSON.stringify({ env, input })).not.toMatch(/Sanitizer|runtime error/);
      expect([0, 1]).toContain(status);
      if (status === 1) expect(JSON.parse(stdout)).toMatchObject({ code: expect.any(Number) });
    };
    const base = { NODEPLANE_CNI_SOCKET: served.socket, NODEPLANE_CNI_SPOOL: served.spoolDir, CNI_PATH: '/nowhere' };
    const text = fc.oneof(
      fc.constantFrom('', '{', '{"cniVersion":"0.4.0"', '{"cniVersion":"0.4.0","prevResult":{"a":[{}]}}', '{"a":"\\'),
      fc.json(),
      fc.string(),
      jsonTrick.map((cniVersion) => JSON.stringify({ x: [{ cniVersion: 1 }], cniVersion })),
    );
    const verb = fc.constantFrom('ADD', 'DEL', 'CHECK', 'STATUS', 'GC', 'VERSION', '', 'ADDER');
    fc.assert(
      fc.property(
        fc.boolean(),
        verb,
        trick,
        trick,
        text,
        (asLoopback, CNI_COMMAND, CNI_CONTAINERID, CNI_IFNAME, input) => {
          const CNI_NETNS = asLoopback ? pod.path : CNI_IFNAME;
          run(asLoopback ? loopback : program, { ...base, CNI_COMMAND, CNI_CONTAINERID, CNI_IFNAME, CNI_NETNS }, input);
        },
      ),
      { numRuns: 60 },
    );
    const away = { ...base, NODEPLANE_CNI_SOCKET: '/nowhere', CNI_COMMAND: 'DEL', CNI_CONTAINERID: 'c' };
    run(program, away, '{}');
    run(program, { ...away, NODEPLANE_CNI_SPOOL: '/dev/null' }, '{}');
    run(program, { ...away, NODEPLANE_CNI_SOCKET: `/${'s'.repeat(200)}` }, '{}');
    writeFileSync(join(served.folder, 'no-socket'), '');
    run(program, { ...away, NODEPLANE_CNI_SOCKET: join(served.folder, 'no-socket') }, '{}');
  });
});
