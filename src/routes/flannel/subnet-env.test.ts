import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { parseCidr } from '../../core/index.ts';
import { placeSubnetEnv, subnetEnv } from './subnet-env.ts';

const folder = mkdtempSync(join(tmpdir(), 'nodeplane-subnet-env-'));
afterAll(() => rmSync(folder, { recursive: true }));

const end = (mtu: number, ...ranges: string[]) => ({ mtu, ranges: ranges.map(parseCidr) });

describe('subnetEnv', () => {
  it('writes what flannel writes in one family', () => {
    const networks = [parseCidr('10.244.0.0/16')];
    expect(subnetEnv({ networks, ends: [end(1450, '10.244.3.0/24')], masquerade: true })).toBe(
      'FLANNEL_NETWORK=10.244.0.0/16\nFLANNEL_SUBNET=10.244.3.1/24\nFLANNEL_MTU=1450\nFLANNEL_IPMASQ=true\n',
    );
  });

  it('writes what flannel writes in both, with the MTU that fits both', () => {
    const networks = ['fd00:10:244::/48', '10.244.0.0/16', '10.245.0.0/16'].map(parseCidr);
    const ends = [end(1450, '10.244.3.0/24'), end(1430, 'fd00:10:244:3::/64')];
    expect(subnetEnv({ networks, ends, masquerade: false })).toBe(`FLANNEL_NETWORK=10.244.0.0/16,10.245.0.0/16
FLANNEL_SUBNET=10.244.3.1/24
FLANNEL_IPV6_NETWORK=fd00:10:244::/48
FLANNEL_IPV6_SUBNET=fd00:10:244:3::1/64
FLANNEL_MTU=1430
FLANNEL_IPMASQ=false
`);
  });

  it('leaves out a family without network', () => {
    const ends = [end(1450, '10.244.3.0/24'), end(1430, 'fd00:10:244:3::/64')];
    const text = subnetEnv({ networks: [parseCidr('10.244.0.0/16')], ends, masquerade: false });
    expect(text).not.toContain('IPV6');
  });
});

describe('placeSubnetEnv', () => {
  it('makes the folder, is readable by all whatever the umask is, and leaves no other file', () => {
    const path = join(folder, 'run', 'flannel', 'subnet.env');
    const umask = process.umask(0o077);
    placeSubnetEnv(path, 'FLANNEL_MTU=1450\n');
    process.umask(umask);
    expect(readFileSync(path, 'utf8')).toBe('FLANNEL_MTU=1450\n');
    expect(statSync(path).mode & 0o777).toBe(0o644);
    const { ino } = statSync(path);
    placeSubnetEnv(path, 'FLANNEL_MTU=1450\n');
    expect(statSync(path).ino).toBe(ino);
    placeSubnetEnv(path, 'FLANNEL_MTU=1400\n');
    expect(statSync(path).ino).not.toBe(ino);
    expect(readdirSync(join(folder, 'run', 'flannel'))).toEqual(['subnet.env']);
  });

  it('names the file that cannot be written, and the flag', () => {
    writeFileSync(join(folder, 'no-folder'), '');
    const path = join(folder, 'no-folder', 'subnet.env');
    expect(() => placeSubnetEnv(path, 'x')).toThrow(
      `Cannot write "${path}", which flannel's CNI plugin reads; correct --routes-flannel-subnet-file`,
    );
    expect(existsSync(path)).toBe(false);
  });
});
