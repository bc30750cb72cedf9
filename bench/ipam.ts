import { mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseIpamConfig, release, reserve } from '../src/ipam/index.ts';
import { createFolder } from '../test/lab/namespace.ts';
import { type Figure, inTurns, ratioAtMost, report } from './report/index.ts';

const ROUNDS = 200;
const IPAM = parseIpamConfig({ ranges: [[{ subnet: '10.200.0.0/16' }]] });
/** Of the 65,533 addresses of the network that pods may have. */
const PART_IN_USE = 0.99;

/**
 * What it costs to reserve and to give back an address when nearly all of a /16 is in use, against a network nobody uses.
 * All but the search is the same: writing the record, and having it on disk.
 */
export async function benchIpam(): Promise<void> {
  const dataDir = createFolder('ipam').path;
  fill(join(dataDir, 'full'));
  const [empty, full] = measure(dataDir, ['empty', 'full']);
  const inUse = readdirSync(join(dataDir, 'full')).filter((name) => name.startsWith('10.')).length;
  const figure = (verb: 'reserve' | 'release'): Figure => ({
    what: `${verb} with ${inUse} addresses in use`,
    unit: 'ms',
    ...inTurns(full![verb], empty![verb]),
    peerName: 'with none in use',
    target: ratioAtMost(2),
  });
  report('ipam', [figure('reserve'), figure('release')]);
}

/** Fills a directory as other pods would have: what is free lies here and there. */
function fill(folder: string): void {
  mkdirSync(folder);
  for (let value = 2; value < 0xffff; value++) {
    if (Math.random() > PART_IN_USE) continue;
    writeFileSync(join(folder, `10.200.${value >> 8}.${value & 0xff}`), `container-${value}\r\neth0`);
  }
}

type Times = Record<'reserve' | 'release', number[]>;

/** Of each network, times in milliseconds; the networks take turns. */
function measure(dataDir: string, networks: readonly string[]): Times[] {
  const sides = networks.map((network) => ({
    location: { dataDir, network },
    times: { reserve: [], release: [] } as Times,
  }));
  const timed = (into: number[], fn: () => unknown) => {
    const start = performance.now();
    fn();
    into.push(performance.now() - start);
  };
  for (let i = 0; i < ROUNDS; i++) {
    const owner = { containerId: `pod-${i}`, ifname: 'eth0' };
    const name = `veth${i}`;
    for (const { location, times } of sides) {
      timed(times.reserve, () => reserve(location, { owner, name, rangeSets: IPAM.rangeSets }));
      timed(times.release, () => release(location, owner, name));
    }
  }
  return sides.map(({ times }) => times);
}
