import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { pino } from 'pino';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { FakeClock } from '../../../../test/fakes/fake-clock.ts';
import type { CniReply } from '../../../cni/index.ts';
import { type Cidr, parseCidr } from '../../../core/index.ts';
import { Spool } from '../kept/spool.ts';
import { type Client, type PluginRun, PluginService } from './plugin-service.ts';
import type { PluginAnswer } from './protocol.ts';
import type { ServedRequest } from './request-log.ts';

let folder: string;
let clock: FakeClock;
let podCidrs: Cidr[];
/** Runs of the plugin in the order of their beginning; each ends when the test says so. */
let runs: (PluginRun & { end(reply?: Partial<CniReply>): void; fail(error?: Error): void })[];
let served: ServedRequest[];
let setAside: string[];
let service: PluginService;

/** A set of each range, or the reason why there is none. */
const ownRanges = () => ({ sets: podCidrs.map((cidr) => [cidr]), lacking: 'pools are full', held: podCidrs });

const CONFIG = JSON.stringify({ name: 'net', ipam: { type: 'nodeplane' } });
const patient: Client = { left: new Promise(() => {}), hasLeft: () => false };

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'nodeplane-spool-'));
  clock = new FakeClock();
  podCidrs = [parseCidr('10.1.0.0/24')];
  runs = [];
  served = [];
  setAside = [];
  service = new PluginService({
    clock,
    logger: pino({ level: 'silent' }),
    spool: new Spool(folder),
    waitMs: 1000,
    concurrency: 4,
    node: () => ({ ranges: ownRanges(), dataDir: '/data' }),
    served: (request) => served.push(request),
    setAside: (reason) => setAside.push(reason),
    binDir: '/plugins',
    run: (run) =>
      new Promise((resolve, reject) => {
        runs.push({
          ...run,
          end: (reply = {}) => resolve({ exitCode: 0, stdout: '', stderr: '', ...reply }),
          fail: (error = new Error('the thread ended')) => reject(error),
        });
      }),
  });
});
afterEach(() => rmSync(folder, { recursive: true }));

/** Begins a request for container `id`; the answer's code is 0, the error's, or 'none'. */
function ask(verb: string, id = 'a', { client = patient, opened = true } = {}) {
  const environment = { CNI_COMMAND: verb, CNI_CONTAINERID: id, CNI_IFNAME: 'eth0', CNI_NETNS: '/run/netns/x' };
  const state = { code: undefined as number | 'none' | undefined };
  void service.serve({ environment, config: CONFIG, netns: opened ? 9 : undefined }, client).then((answer) => {
    state.code = codeOf(answer);
  });
  return state;
}

function codeOf(answer: PluginAnswer | undefined): number | 'none' {
  if (!answer) return 'none';
  return answer.exitCode === 0 ? 0 : (JSON.parse(answer.stdout) as { code: number }).code;
}

function keep(name: string, variables: string, config = CONFIG): void {
  const header = Buffer.alloc(16);
  header.write('NPCQ\x01');
  header.writeUInt32LE(variables.length, 8);
  header.writeUInt32LE(config.length, 12);
  writeFileSync(join(folder, `${name}-1.request`), Buffer.concat([header, Buffer.from(variables + config)]));
}

/** What was set aside, with the reason. */
function aside(): Record<string, string> {
  const directory = join(folder, 'set-aside');
  const names = existsSync(directory) ? readdirSync(directory).filter((name) => !name.endsWith('.reason')) : [];
  return Object.fromEntries(
    names.map((name) => [name, readFileSync(join(directory, `${name}.reason`), 'utf8').trim()]),
  );
}

const begun = async () => {
  await clock.advance(0);
  return runs.map(({ environment }) => `${environment.CNI_COMMAND} ${environment.CNI_CONTAINERID}`);
};

describe('the service', () => {
  it('gives an ADD the node’s ranges, and none to other verbs before they are known', async () => {
    await service.settle();
    ask('ADD');
    await begun();
    expect(runs[0]).toMatchObject({ netns: 9 });
    expect(JSON.parse(runs[0]!.stdin).ipam).toEqual({
      type: 'nodeplane',
      dataDir: '/data',
      ranges: [[{ subnet: '10.1.0.0/24' }]],
    });
    podCidrs = [];
    const [adding, asking, removing] = [ask('ADD', 'b'), ask('STATUS', 'b'), ask('DEL', 'b')];
    expect(await begun()).toEqual(['ADD a', 'DEL b']);
    expect([adding.code, asking.code, removing.code]).toEqual([11, 50, undefined]);
  });

  it('serves DEL at once, and ADD after the kept requests', async () => {
    keep('1', 'CNI_COMMAND=DEL\0CNI_CONTAINERID=old\0CNI_IFNAME=eth0\0CNI_NETNS=/run/netns/other\0');
    ask('ADD');
    ask('DEL', 'b');
    expect(await begun()).toEqual(['DEL b']);
    const settling = service.settle();
    expect(await begun()).toEqual(['DEL b', 'DEL old']);
    expect(runs[1]).toMatchObject({ environment: { CNI_NETNS: '' }, netns: undefined });
    runs[1]!.end();
    await settling;
    expect(await begun()).toEqual(['DEL b', 'DEL old', 'ADD a']);
    expect(new Spool(folder).count()).toBe(0);
  });

  it('keeps what may succeed later, and sets aside what cannot', async () => {
    keep('1', 'CNI_COMMAND=DEL\0CNI_CONTAINERID=busy\0');
    keep('2', 'CNI_COMMAND=DEL\0CNI_CONTAINERID=wrong\0');
    keep('3', 'CNI_COMMAND=ADD\0CNI_CONTAINERID=odd\0');
    const settling = service.settle();
    await begun();
    runs[0]!.end({ exitCode: 1, stdout: '{"code":11,"msg":"later"}' });
    await begun();
    runs[1]!.end({ exitCode: 1, stdout: '{"code":7,"msg":"never"}' });
    await settling;
    expect(await begun()).toEqual(['DEL busy', 'DEL wrong']);
    expect(new Spool(folder).list().map(({ name }) => name)).toEqual(['1-1.request']);
    expect(aside()).toEqual({
      '2-1.request': '{"code":7,"msg":"never"}',
      '3-1.request': 'It is no DEL but "ADD"',
    });
    expect(setAside.sort()).toEqual(['refused', 'unreadable']);
  });

  it('tells who waits too long to try again later, and forgets who left', async () => {
    await service.settle();
    let leave = () => {};
    const left = new Promise<void>((resolve) => {
      leave = resolve;
    });
    const first = ask('ADD');
    const [second, gone] = [ask('DEL'), ask('DEL', 'a', { client: { left, hasLeft: () => true } })];
    expect(await begun()).toEqual(['ADD a']);
    leave();
    await clock.advance(999);
    expect([first.code, second.code, gone.code]).toEqual([undefined, undefined, 'none']);
    await clock.advance(1);
    expect(second.code).toBe(11);
    runs[0]!.end();
    expect(await begun()).toEqual(['ADD a']);
    expect(first.code).toBe(0);
    expect(served.map(({ environment }) => environment.CNI_COMMAND)).toEqual(['DEL', 'ADD']);
  });

  it('takes a successful ADD back when nobody waits for it any more, before a DEL of the same attachment', async () => {
    await service.settle();
    const adding = ask('ADD', 'a', { client: { ...patient, hasLeft: () => true } });
    const removing = ask('DEL');
    await begun();
    runs[0]!.end();
    expect(await begun()).toEqual(['ADD a', 'DEL a']);
    expect(runs[1]).toMatchObject({ netns: 9 });
    runs[1]!.end();
    expect(await begun()).toEqual(['ADD a', 'DEL a', 'DEL a']);
    expect([adding.code, removing.code]).toEqual(['none', undefined]);
  });

  it('does not try the path of a namespace the plugin could not open', async () => {
    await service.settle();
    expect([ask('ADD', 'a', { opened: false }), ask('CHECK', 'a', { opened: false })]).toHaveLength(2);
    ask('DEL', 'a', { opened: false });
    expect(await begun()).toEqual(['DEL a']);
    expect(runs[0]!.environment.CNI_NETNS).toBe('');
    expect(served.map(({ answer }) => codeOf(answer))).toEqual([4, 4]);
  });

  it('ends what runs when it stops, and begins nothing', async () => {
    await service.settle();
    const [running, waiting] = [ask('ADD'), ask('DEL')];
    await begun();
    let stopped = false;
    void service.stop().then(() => {
      stopped = true;
    });
    const late = ask('ADD', 'b');
    await clock.advance(10);
    expect([running.code, waiting.code, late.code, stopped]).toEqual([undefined, 11, 11, false]);
    runs[0]!.end();
    await clock.advance(10);
    expect([running.code, stopped]).toEqual([0, true]);
    expect(await begun()).toEqual(['ADD a']);
  });

  it('keeps nothing of requests that were answered', async () => {
    service = new PluginService({
      clock,
      logger: pino({ level: 'silent' }),
      spool: new Spool(folder),
      node: () => ({ ranges: ownRanges(), dataDir: '/data' }),
      served: () => {},
      setAside: () => {},
      binDir: '/plugins',
      run: async () => ({ exitCode: 0, stdout: '', stderr: '' }),
    });
    const environment = { CNI_COMMAND: 'DEL', CNI_CONTAINERID: 'a', CNI_IFNAME: 'eth0' };
    const serve = async (count: number) => {
      const request = { environment, config: CONFIG, netns: undefined };
      for (let i = 0; i < count; i++)
        await service.serve(request, { left: new Promise(() => {}), hasLeft: () => false });
    };
    setFlagsFromString('--expose-gc');
    const collectGarbage = runInNewContext('gc') as () => void;
    await serve(500);
    collectGarbage();
    const before = process.memoryUsage().heapUsed;
    await serve(4000);
    collectGarbage();
    // 100 bytes a request.
    expect(process.memoryUsage().heapUsed - before).toBeLessThan(400_000);
  });

  it('answers with an error of the specification when the plugin breaks', async () => {
    await service.settle();
    const environment = { CNI_COMMAND: 'STATUS' };
    const broken = new PluginService({
      clock,
      logger: pino({ level: 'silent' }),
      spool: new Spool(folder),
      served: () => {},
      setAside: () => {},
      binDir: '/plugins',
      node: () => ({ ranges: ownRanges(), dataDir: '/data' }),
      run: () => Promise.reject(new Error('broken')),
    });
    const answer = await broken.serve({ environment, config: CONFIG, netns: undefined }, patient);
    expect(JSON.parse(answer!.stdout)).toMatchObject({ code: 999, msg: 'Internal error: broken' });
  });

  it('asks for the status with the plugins of the node', async () => {
    void service.status(CONFIG);
    await begun();
    expect(runs[0]!.environment).toMatchObject({ CNI_COMMAND: 'STATUS', CNI_PATH: '/plugins' });
  });

  it('takes back an ADD whose thread ended, and one whose result nobody can take', async () => {
    await service.settle();
    const [ended, large] = [ask('ADD', 'a'), ask('ADD', 'b')];
    await begun();
    runs[0]!.fail();
    runs[1]!.end({ stdout: ' '.repeat((1 << 20) + 1) });
    expect(await begun()).toEqual(['ADD a', 'ADD b', 'DEL a', 'DEL b']);
    expect([ended.code, large.code]).toEqual([undefined, undefined]);
    runs[2]!.fail();
    runs[3]!.end();
    await begun();
    expect([ended.code, large.code]).toEqual([999, 999]);
    expect(served.map(({ answer }) => answer.stdout).join()).toContain('more than the 1048576');
  });
});

describe('one kept DEL that cannot be settled', () => {
  const kept = (id: string) => `CNI_COMMAND=DEL\0CNI_CONTAINERID=${id}\0CNI_IFNAME=eth0\0`;
  const settle = async (...ends: ((run: (typeof runs)[number]) => void)[]) => {
    const settling = service.settle();
    for (const end of ends) {
      await begun();
      end(runs.at(-1)!);
    }
    await settling;
  };

  it('is tried three times when its thread ends, keeps nobody else waiting, and is set aside', async () => {
    keep('1', kept('fatal'));
    keep('2', kept('good'));
    const adding = ask('ADD');
    await settle(
      (run) => run.fail(),
      (run) => run.end(),
    );
    expect(await begun()).toEqual(['DEL fatal', 'DEL good', 'ADD a']);
    runs[2]!.end();
    await settle((run) => run.fail());
    expect(aside()).toEqual({});
    await settle((run) => run.fail());
    expect(aside()).toEqual({ '1-1.request': 'Tried 3 times, at last: the thread ended' });
    expect(setAside).toEqual(['failed']);
    expect(adding.code).toBe(0);
    expect(new Spool(folder).count()).toBe(0);
  });

  it.each([
    ['a configuration that is no JSON', '{'],
    ['a configuration of 6,000 levels', '{"name":"net","x":'.concat('['.repeat(6000), ']'.repeat(6000), '}')],
  ])('because of %s is passed to the plugin as it is', async (_, config) => {
    keep('1', kept('deep'), config);
    await settle((run) => run.end({ exitCode: 1, stdout: '{"code":6,"msg":"too deep"}' }));
    expect(runs[0]!.stdin).toBe(config);
    expect(aside()).toEqual({ '1-1.request': '{"code":6,"msg":"too deep"}' });
  });

  it('because its file cannot be read opens the way all the same', async () => {
    mkdirSync(join(folder, '1-1.request'));
    writeFileSync(join(folder, '2-1.request'), Buffer.alloc(3 << 20));
    keep('3', kept('good'));
    await settle((run) => run.end());
    expect(aside()).toEqual({
      '1-1.request': 'It is no file',
      '2-1.request': expect.stringContaining('It has 3145728 bytes'),
    });
    ask('ADD');
    expect(await begun()).toEqual(['DEL good', 'ADD a']);
  });

  it('because it hangs is waited for 20 seconds when the service stops, and the way is open then', async () => {
    keep('1', kept('hanging'));
    void service.settle();
    expect(await begun()).toEqual(['DEL hanging']);
    const ended: string[] = [];
    void service.open.then(() => ended.push('opening'));
    void service.stop().then(() => ended.push('service'));
    await clock.advance(19_000);
    expect(ended).toEqual(['opening']);
    await clock.advance(1000);
    expect(ended).toEqual(['opening', 'service']);
  });

  it('because it hangs keeps ADDs waiting for 30 seconds, and then no more', async () => {
    service = new PluginService({
      clock,
      logger: pino({ level: 'silent' }),
      spool: new Spool(folder),
      served: () => {},
      setAside: () => {},
      binDir: '/plugins',
      node: () => ({ ranges: ownRanges(), dataDir: '/data' }),
      run: (run) => new Promise(() => runs.push({ ...run, end: () => {}, fail: () => {} })),
    });
    keep('1', kept('hanging'));
    void service.settle();
    ask('ADD');
    await clock.advance(29_999);
    expect(await begun()).toEqual(['DEL hanging']);
    await clock.advance(1);
    expect(await begun()).toEqual(['DEL hanging', 'ADD a']);
  });

  it('does not take away the same container when it is attached again', async () => {
    await service.settle();
    keep('1', kept('a'));
    ask('ADD');
    await begun();
    runs[0]!.end({ exitCode: 1, stdout: '{"code":11,"msg":"later"}' });
    expect(await begun()).toEqual(['DEL a', 'ADD a']);
    expect(Object.keys(aside())).toEqual(['1-1.request']);
    expect(setAside).toEqual(['superseded']);
    runs[1]!.end();
    await settle();
    expect(await begun()).toEqual(['DEL a', 'ADD a']);
  });

  it('is one of the hundred latest and 16 MiB that stay for people to look at', async () => {
    for (let n = 100; n < 220; n++) keep(String(n), kept('x'), 'x'.repeat(10));
    for (let n = 300; n < 320; n++) writeFileSync(join(folder, `${n}-1.request`), Buffer.alloc(2 << 20));
    await settle(
      ...Array.from(
        { length: 120 },
        () => (run: (typeof runs)[number]) => run.end({ exitCode: 1, stdout: '{"code":7}' }),
      ),
    );
    const names = Object.keys(aside()).sort();
    expect(names.length).toBeLessThanOrEqual(100);
    expect(names).toContain('319-1.request');
    expect(names).not.toContain('310-1.request');
    expect(readdirSync(join(folder, 'set-aside')).length).toBe(2 * names.length);
  });
});
