import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { afterEach, describe, expect, it } from 'vitest';
import { createNamespace, removeAll, startTime, type TestNamespace } from '../namespace.ts';
import { type BareNode, createNode, linksOf, reaches, snapshot } from './fixture.ts';
import { callPlugin, type PluginCall } from './plugin.ts';

afterEach(removeAll);

const vethsOf = (namespace: TestNamespace) => linksOf(namespace).filter(({ ifname }) => ifname.startsWith('veth'));
const journalOf = (node: BareNode) => {
  const folder = join(node.dataDir, 'net', '.nodeplane');
  return existsSync(folder) ? readdirSync(folder).filter((name) => name.startsWith('veth')) : [];
};
const gc = (node: BareNode, valid: unknown, call: Partial<PluginCall> = {}, key = 'cni.dev/valid-attachments') =>
  callPlugin(node.namespace, { command: 'GC', config: node.config({ [key]: valid }), ...call });
const attachment = ({ name }: TestNamespace, ifname = 'eth0') => ({ containerID: name, ifname });

describe('GC', () => {
  it.each(['cni.dev/valid-attachments', 'cni.dev/attachments'])(
    'deletes all that %s does not name, and nothing else',
    async (key) => {
      const node = createNode();
      const [pod, other, twice] = [createNamespace('pod'), createNamespace('other'), createNamespace('twice')];
      for (const namespace of [pod, other, twice]) await node.add(namespace);
      await node.add(twice, { ifname: 'net1' });
      const elsewhere = node.config({ name: 'second', bridge: 'cni1' }, { ranges: [[{ subnet: '10.9.0.0/24' }]] });
      const stranger = createNamespace('stranger');
      await node.add(stranger, { config: elsewhere });
      // Of host-local: one whose container is gone, one that is valid, two nobody can belong to, one nobody knows.
      const put = (name: string, content: string) => writeFileSync(join(node.dataDir, 'net', name), content);
      put('10.244.1.50', 'gone\r\neth0');
      put('10.244.1.51', other.name);
      put('10.244.1.52', '');
      put('10.244.1.53', 'other-container');
      put('10.244.1.54', 'something else altogether');

      const valid = [attachment(other), attachment(twice, 'net1')];
      const { status, stdout, stderr } = await gc(node, valid, {}, key);
      expect({ status, stdout }).toEqual({ status: 0, stdout: '' });
      expect(stderr).toContain(`of "net/${pod.name}/eth0"`);
      expect(stderr).toContain('Gave back 10.244.1.50 of gone eth0');
      expect(linksOf(pod).map(({ ifname }) => ifname)).toEqual(['lo']);
      expect(linksOf(twice).map(({ ifname }) => ifname)).toEqual(['lo', 'net1']);
      expect(node.reservations().sort()).toEqual(
        ['10.244.1.3', '10.244.1.5', '10.244.1.51', '10.244.1.54', 'fd00:10:244:1::3', 'fd00:10:244:1::5'].sort(),
      );
      expect(journalOf(node)).toHaveLength(2);
      expect(reaches(other, '10.244.1.5')).toBe(true);
      expect(reaches(stranger, '10.9.0.1')).toBe(true);

      const before = snapshot([node.namespace, other, twice], node.dataDir);
      expect((await gc(node, valid, {}, key)).stderr).toBe('');
      expect(snapshot([node.namespace, other, twice], node.dataDir)).toEqual(before);
    },
  );

  it('deletes everything of the network when nothing is valid', async () => {
    const node = createNode();
    await node.add(createNamespace('pod'));
    for (const none of [null, []]) expect((await gc(node, none)).status).toBe(0);
    expect(node.reservations()).toEqual([]);
    expect(vethsOf(node.namespace)).toEqual([]);
  });

  it.each([5, [{ containerID: 'a' }], [{ containerID: '..', ifname: 'eth0' }], [{ containerID: 'a', ifname: 'a/b' }]])(
    'deletes nothing when it cannot read what is valid: %j',
    async (valid) => {
      const node = createNode();
      const pod = createNamespace('pod');
      await node.add(pod);
      const before = snapshot([node.namespace, pod], node.dataDir);
      expect((await gc(node, valid)).json).toMatchObject({ code: 7 });
      expect(snapshot([node.namespace, pod], node.dataDir)).toEqual(before);
    },
  );

  it.each(['pod-link', 'features'])('leaves an ADD alone that is under way, at %s', async (failpoint) => {
    const node = createNode();
    const pod = createNamespace('pod');
    const env = { NODEPLANE_CNI_FAILPOINT: failpoint };
    const config = node.config({ ipMasq: true, firewall: true, ingressPolicy: 'isolated', macspoofchk: true });
    await callPlugin(node.namespace, { command: 'ADD', containerId: pod.name, netns: pod, config, env });
    const rules = () => node.namespace.run('nft', '-s', 'list', 'ruleset');
    // It was killed half-way; let the note say that this process makes it, and it is as if it had not been.
    const [note] = journalOf(node).map((name) => join(node.dataDir, 'net', '.nodeplane', name));
    const maker = `${process.pid}:${startTime(process.pid)}`;
    writeFileSync(note!, JSON.stringify({ ...JSON.parse(readFileSync(note!, 'utf8')), maker }));
    // What the ADD did to links and addresses shows a moment later.
    let before = snapshot([node.namespace, pod], node.dataDir);
    const isAtRest = () => {
      const last = before;
      before = snapshot([node.namespace, pod], node.dataDir);
      return isDeepStrictEqual(before, last);
    };
    await expect.poll(isAtRest, { interval: 500 }).toBe(true);
    const rulesBefore = rules();
    expect(rulesBefore.includes(pod.name)).toBe(failpoint === 'features');
    expect(await gc(node, [])).toMatchObject({ status: 0, stderr: '' });
    expect(snapshot([node.namespace, pod], node.dataDir)).toEqual(before);
    expect(rules()).toBe(rulesBefore);
    writeFileSync(note!, JSON.stringify({ ...JSON.parse(readFileSync(note!, 'utf8')), maker: `${process.pid}:1` }));
    expect((await gc(node, [])).status).toBe(0);
    expect(node.reservations()).toEqual([]);
    expect(vethsOf(node.namespace)).toEqual([]);
    expect(rules()).not.toContain(pod.name);
  });
});

describe('addresses of pods that are gone without DEL', () => {
  const small = { ranges: [[{ subnet: '10.7.0.0/29' }]] };

  it('are given back before an ADD fails for want of them', async () => {
    const node = createNode();
    const config = node.config({}, small);
    const pods = Array.from({ length: 5 }, (_, i) => createNamespace(`pod${i}`));
    for (const pod of pods) await node.add(pod, { config });
    const late = createNamespace('late');
    const full = await callPlugin(node.namespace, { command: 'ADD', netns: late, config });
    expect(full.json).toMatchObject({ code: 102, msg: expect.stringContaining('5 in use (5 by pods of this plugin)') });
    pods[1]!.remove();
    await expect.poll(() => vethsOf(node.namespace).length).toBe(4);
    const { ips } = await node.add(late, { config });
    expect(ips!.map(({ address }) => address)).toEqual(['10.7.0.3/29']);
    expect(reaches(pods[0]!, '10.7.0.3')).toBe(true);
  });

  it('are not taken from reservations of another program, which are counted', async () => {
    const node = createNode();
    const config = node.config({}, small);
    await node.add(createNamespace('pod'), { config });
    for (const last of [3, 4, 5]) writeFileSync(join(node.dataDir, 'net', `10.7.0.${last}`), 'theirs\r\neth0');
    writeFileSync(join(node.dataDir, 'net', '10.7.0.6'), '');
    const { json } = await callPlugin(node.namespace, { command: 'ADD', netns: createNamespace('late'), config });
    expect(json!.msg).toBe(
      'Cannot reserve an address: no IP addresses available in range set: 10.7.0.1-10.7.0.6, 5 in use (1 by pods of this plugin, 3 by reservations of other programs, 1 by files that name nobody) and 10.7.0.1 kept for the gateway; enlarge the range or look for leaked reservations',
    );
  });

  it('are given back after the node was started anew', async () => {
    const node = createNode();
    const [pod, other] = [createNamespace('pod'), createNamespace('other')];
    await node.add(pod);
    const folder = join(node.dataDir, 'net');
    // What a reboot leaves: files of the earlier run, no links. And an address reserved since then by host-local.
    writeFileSync(join(folder, '10.244.1.40'), 'live\r\neth0');
    pod.remove();
    writeFileSync(join(folder, '.nodeplane', 'boot-id'), 'an-earlier-run');
    for (const entry of journalOf(node)) {
      const path = join(folder, '.nodeplane', entry);
      writeFileSync(path, JSON.stringify({ ...JSON.parse(readFileSync(path, 'utf8')), bootId: 'an-earlier-run' }));
    }
    await node.add(other);
    expect(node.reservations().sort()).toEqual(['10.244.1.3', '10.244.1.40', 'fd00:10:244:1::3'].sort());
  });
});
