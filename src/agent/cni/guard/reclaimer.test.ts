import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pino } from 'pino';
import { Registry } from 'prom-client';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { FakeClock } from '../../../../test/fakes/fake-clock.ts';
import { parseIp } from '../../../core/index.ts';
import type { ReclaimReport } from './reclaim-node.ts';
import { Reclaimer } from './reclaimer.ts';

let folder: string;
let clock: FakeClock;
let registry: Registry;
let reclaimer: Reclaimer;
let said: Record<string, unknown>[];

/** What reclaiming comes to. */
let reclaim: () => Promise<ReclaimReport>;

/** An attachment of an earlier run of the kernel is certainly gone. */
const leave = () => {
  const notes = join(folder, 'net', '.nodeplane');
  mkdirSync(notes, { recursive: true });
  const note = { containerId: 'a', ifname: 'eth0', addresses: [], features: [], bootId: 'earlier', maker: '1:2' };
  writeFileSync(join(notes, 'veth1'), JSON.stringify(note));
};
const COLLECTED: ReclaimReport = {
  collected: [{ network: 'net', containerId: 'a', ifname: 'eth0', addresses: [parseIp('10.0.0.2')] }],
  restored: [{ network: 'net', owner: { containerId: 'b', ifname: 'eth0' }, address: parseIp('10.0.0.3') }],
  failures: ['no'],
};

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'nodeplane-reclaimer-'));
  clock = new FakeClock();
  registry = new Registry();
  said = [];
  const logger = pino({ base: null, timestamp: false }, { write: (line) => void said.push(JSON.parse(line)) });
  reclaimer = new Reclaimer({ dataDirs: [folder], reclaim: () => reclaim(), registry, clock, logger });
});
afterEach(() => {
  reclaimer.stop();
  rmSync(folder, { recursive: true });
});

it('looks every few minutes, and collects what is still left a second later', async () => {
  reclaim = () => Promise.resolve(COLLECTED);
  reclaimer.start();
  await clock.advance(179_000);
  leave();
  await clock.advance(1000);
  await clock.advance(999);
  expect(said).toEqual([]);
  await clock.advance(1);
  await expect.poll(() => said).toHaveLength(3);
  const facts = { network: 'net', container: 'a', ifname: 'eth0', addresses: ['10.0.0.2'] };
  expect(said[0]).toMatchObject({ level: 30, ...facts });
  expect(said[1]).toMatchObject({ level: 40, network: 'net', container: 'b', address: '10.0.0.3' });
  expect(said[2]).toMatchObject({ level: 40, failure: 'no' });
  expect(await registry.metrics()).toContain('nodeplane_cni_collected_addresses_total 1');
});

it('tries again after a thread that ended', async () => {
  reclaim = () => Promise.reject(new Error('thrown'));
  leave();
  reclaimer.start();
  await clock.advance(1000);
  await expect.poll(() => said).toMatchObject([{ level: 50, err: { message: 'thrown' } }]);
  reclaim = () => Promise.resolve(COLLECTED);
  await clock.advance(180_000);
  await clock.advance(1000);
  await expect.poll(() => said).toHaveLength(4);
});

it('says nothing of a thread that ends with the agent, and begins nothing any more', async () => {
  let end = () => {};
  reclaim = () =>
    new Promise((_, reject) => {
      end = () => reject(new Error('ended'));
    });
  leave();
  reclaimer.start();
  await clock.advance(1000);
  reclaimer.stop();
  end();
  reclaim = () => Promise.resolve(COLLECTED);
  await clock.advance(400_000);
  expect(said).toEqual([]);
});

it('tells of a note that cannot be read, once while it lasts', async () => {
  leave();
  writeFileSync(join(folder, 'net', '.nodeplane', 'veth1'), '{"containerId":');
  reclaimer.start();
  const told = { level: 40, link: 'veth1', path: join(folder, 'net', '.nodeplane', 'veth1') };
  expect(said).toMatchObject([{ ...told, remedy: expect.stringContaining('remove the file') }]);
  await clock.advance(180_000);
  expect(said).toHaveLength(1);
});
