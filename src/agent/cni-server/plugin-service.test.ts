import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pino } from 'pino';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { FakeClock } from '../../../test/fakes/fake-clock.ts';
import type { CniReply } from '../../cni/index.ts';
import { type Cidr, parseCidr } from '../../core/index.ts';
import { type Asker, type PluginRun, PluginService } from './plugin-service.ts';
import type { PluginAnswer } from './protocol.ts';
import type { ServedRequest } from './request-log.ts';
import { Spool } from './spool.ts';

let folder: string;
let clock: FakeClock;
let podCidrs: Cidr[];
/** Runs of the plugin in the order of their beginning; each ends when the test says so. */
let runs: (PluginRun & { end(reply?: Partial<CniReply>): void })[];
let served: ServedRequest[];
let service: PluginService;

const CONFIG = JSON.stringify({ name: 'net', ipam: { type: 'nodeplane' } });
const patient: Asker = { left: new Promise(() => {}), hasLeft: () => false };

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'nodeplane-spool-'));
  clock = new FakeClock();
  podCidrs = [parseCidr('10.1.0.0/24')];
  runs = [];
  served = [];
  service = new PluginService({
    ...{ clock, logger: pino({ level: 'silent' }), spool: new Spool(folder), waitMs: 1000, concurrency: 4 },
    node: () => ({ podCidrs, dataDir: '/data' }),
    served: (request) => served.push(request),
    run: (run) =>
      new Promise((resolve) => {
        runs.push({ ...run, end: (reply = {}) => resolve({ exitCode: 0, stdout: '', stderr: '', ...reply }) });
      }),
  });
});
afterEach(() => rmSync(folder, { recursive: true }));

/** Begins a request for container `id`; the answer's code is 0, the error's, or 'none'. */
function ask(verb: string, id = 'a', { asker = patient, opened = true } = {}) {
  const environment = { CNI_COMMAND: verb, CNI_CONTAINERID: id, CNI_IFNAME: 'eth0', CNI_NETNS: '/run/netns/x' };
  const state = { code: undefined as number | 'none' | undefined };
  void service.serve({ environment, config: CONFIG, netns: opened ? 9 : undefined }, asker).then((answer) => {
    state.code = codeOf(answer);
  });
  return state;
}

function codeOf(answer: PluginAnswer | undefined): number | 'none' {
  if (!answer) return 'none';
  return answer.exitCode === 0 ? 0 : (JSON.parse(answer.stdout) as { code: number }).code;
}

function keep(name: string, variables: string): void {
  const header = Buffer.alloc(16);
  header.write('NPCQ\x01');
  header.writeUInt32LE(variables.length, 8);
  header.writeUInt32LE(CONFIG.length, 12);
  writeFileSync(join(folder, `${name}-1.request`), Buffer.concat([header, Buffer.from(variables + CONFIG)]));
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
      ...{ type: 'nodeplane', dataDir: '/data', ranges: [[{ subnet: '10.1.0.0/24' }]] },
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

  it('keeps what may succeed later, and gives up what cannot', async () => {
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
  });

  it('tells who waits too long to try again later, and forgets who left', async () => {
    await service.settle();
    let leave = () => {};
    const left = new Promise<void>((resolve) => {
      leave = resolve;
    });
    const first = ask('ADD');
    const [second, gone] = [ask('DEL'), ask('DEL', 'a', { asker: { left, hasLeft: () => true } })];
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
    const adding = ask('ADD', 'a', { asker: { ...patient, hasLeft: () => true } });
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

  it('answers with an error of the specification when the plugin breaks', async () => {
    await service.settle();
    const environment = { CNI_COMMAND: 'STATUS' };
    const broken = new PluginService({
      ...{ clock, logger: pino({ level: 'silent' }), spool: new Spool(folder), served: () => {} },
      node: () => ({ podCidrs, dataDir: '/data' }),
      run: () => Promise.reject(new Error('broken')),
    });
    const answer = await broken.serve({ environment, config: CONFIG, netns: undefined }, patient);
    expect(JSON.parse(answer!.stdout)).toMatchObject({ code: 999, msg: 'Internal error: broken' });
  });
});
