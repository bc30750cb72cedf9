import { mkdirSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Agent } from '../lab.ts';
import { createNamespace, removeAll } from '../namespace.ts';
import { linksOf, reaches } from './fixture.ts';
import { holdReservations, waitsForReservations } from './lock-holder.ts';
import { createServedNode, type ServedNode } from './served-node.ts';

let served: ServedNode;
let agent: Agent;

const veths = () => linksOf(served.node.namespace).filter(({ ifname }) => ifname.startsWith('veth'));
const settled = () => agent.logs().filter(({ msg }) => String(msg).startsWith('CNI DEL settled'));

beforeEach(async () => {
  served = createServedNode();
  agent = await served.startAgent();
});
afterEach(removeAll);

describe('the plugin on the host, without agent', () => {
  it('says so, each verb in its way', async () => {
    const pod = createNamespace('pod');
    await agent.stop();
    const details = expect.stringContaining(`at ${served.socket} (`);
    const away = /^The nodeplane agent is not running/;
    for (const [verb, code] of [
      ['ADD', 11],
      ['CHECK', 11],
      ['GC', 11],
      ['STATUS', 50],
    ] as const) {
      const outcome = await served.call(verb, pod);
      expect(outcome).toMatchObject({ status: 1, json: { code, msg: expect.stringMatching(away), details } });
    }
    expect(await served.call('VERSION')).toMatchObject({ status: 0 });
    expect(served.kept()).toEqual([]);
  });

  it('keeps DELs, which the next agent settles before it serves an ADD', async () => {
    const pods = ['a', 'b', 'c'].map((name) => createNamespace(name));
    for (const pod of pods) expect(await served.call('ADD', pod)).toMatchObject({ status: 0 });
    await agent.kill();
    for (const pod of pods) expect(await served.call('DEL', pod)).toMatchObject({ status: 0, stdout: '' });
    expect(served.kept()).toHaveLength(3);
    expect(veths()).toHaveLength(3);
    // Its namespace is gone by then, as a runtime makes it go after a DEL; another one's path is of no interest.
    pods[0]!.remove();

    agent = await served.startAgent();
    expect(served.kept()).toEqual([]);
    expect(settled()).toHaveLength(3);
    expect(veths()).toEqual([]);
    expect(served.reservations()).toEqual([]);
    expect(await served.call('ADD', pods[1])).toMatchObject({ status: 0 });
    expect(reaches(pods[1]!, '10.244.1.1')).toBe(true);
  });

  it('cannot keep a DEL that names no container, or where there is no directory for it', async () => {
    const pod = createNamespace('pod');
    await agent.stop();
    const nameless = await served.call('DEL', pod, { env: { CNI_CONTAINERID: undefined } });
    expect(nameless).toMatchObject({ status: 1, json: { code: 4 } });
    const placeless = await served.call('DEL', pod, { env: { NODEPLANE_CNI_SPOOL: '/nowhere' } });
    expect(placeless).toMatchObject({ status: 1, json: { code: 11, details: 'No such file or directory' } });
  });

  it('puts nothing of the request into the file’s name', async () => {
    const pod = createNamespace('pod');
    await agent.stop();
    const path = '../../escape';
    expect(await served.call('DEL', pod, { containerId: path, ifname: path })).toMatchObject({ status: 0 });
    expect(served.kept()).toEqual([expect.stringMatching(/^\d{12}\.\d{9}-\d+\.request$/)]);
    agent = await served.startAgent();
    // It can never succeed.
    expect(served.kept()).toEqual([]);
    expect(agent.logs()).toContainEqual(expect.objectContaining({ msg: expect.stringContaining('set aside') }));
  });
});

describe('an agent that is killed in the middle of a request', () => {
  it('leaves an ADD that fails and a DEL that is settled later', async () => {
    const release = await holdReservations(served);
    const [pod, other] = [createNamespace('pod'), createNamespace('other')];
    const adding = served.start('ADD', pod);
    await expect.poll(() => waitsForReservations(agent.pid)).toBe(true);
    const removing = served.start('DEL', other);
    await agent.kill();
    expect(await adding.outcome).toMatchObject({ status: 1, json: { code: 11 } });
    expect(await removing.outcome).toMatchObject({ status: 0, stdout: '' });
    expect(await served.call('DEL', pod)).toMatchObject({ status: 0, stdout: '' });
    expect(served.kept()).toHaveLength(2);
    release();

    agent = await served.startAgent();
    expect(served.kept()).toEqual([]);
    expect(served.reservations()).toEqual([]);
    expect(veths()).toEqual([]);
    expect(await served.call('ADD', pod)).toMatchObject({ status: 0 });
    expect(await served.call('DEL', pod)).toMatchObject({ status: 0 });
    expect(served.reservations()).toEqual([]);
  });
});

describe('the agent at its start', () => {
  it('does not mind rubbish among the kept requests, and sets aside what cannot be one', async () => {
    await agent.stop();
    const file = (name: string, content: string | Buffer) => writeFileSync(join(served.spoolDir, name), content);
    file('000000000001.000000000-1.request', 'NPCQ');
    file('000000000002.000000000-1.request', Buffer.alloc(1000, 255));
    file('.x.tmp', 'half');
    file('.y.tmp', 'half');
    utimesSync(join(served.spoolDir, '.y.tmp'), 1, 1);
    file('something-else', '');
    mkdirSync(join(served.spoolDir, '000000000003.000000000-1.request'));
    agent = await served.startAgent();
    expect(served.kept()).toEqual(['.x.tmp', 'something-else']);
    expect(await served.call('ADD', createNamespace('pod'))).toMatchObject({ status: 0 });
  });

  it('settles a DEL kept too late for it when the same container comes again', async () => {
    const pod = createNamespace('pod');
    expect(await served.call('ADD', pod)).toMatchObject({ status: 0 });
    const env = { NODEPLANE_CNI_SOCKET: '/nowhere' };
    expect(await served.call('DEL', pod, { env })).toMatchObject({ status: 0 });
    expect(served.kept()).toHaveLength(1);
    // Podman gives a container that is started again its old ID.
    expect(await served.call('ADD', pod)).toMatchObject({ status: 0 });
    expect(served.kept()).toEqual([]);
    expect(reaches(pod, '10.244.1.1')).toBe(true);
  });
});
