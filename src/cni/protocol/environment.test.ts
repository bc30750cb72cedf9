import { describe, expect, it } from 'vitest';
import { isNetworkName, objectionToInterfaceName, readAttachment, requireVariables } from './environment.ts';

const env = (change: object) => ({ CNI_CONTAINERID: 'a', CNI_IFNAME: 'eth0', ...change });

describe('readAttachment', () => {
  it('reads what is there', () => {
    expect(readAttachment(env({ CNI_NETNS: '/run/netns/x' }))).toEqual({
      containerId: 'a',
      ifname: 'eth0',
      netns: '/run/netns/x',
      allowOwnNetns: false,
    });
    expect(readAttachment(env({ CNI_NETNS_OVERRIDE: 'TRUE' }))).toMatchObject({ netns: '', allowOwnNetns: true });
    expect(readAttachment(env({ CNI_NETNS_OVERRIDE: '0' })).allowOwnNetns).toBe(false);
  });

  it.each(['a/b', '.hidden', '-dash', '..', 'a b', 'a\n', 'ä', 'a\0'])('refuses the container ID %j', (id) => {
    expect(() => readAttachment(env({ CNI_CONTAINERID: id }))).toThrow(
      expect.objectContaining({ cniCode: 4, message: expect.stringContaining('CNI_CONTAINERID') }),
    );
  });
});

it('takes container IDs and network names as runtimes make them', () => {
  for (const id of ['0', 'k8s_POD_x-1.2', 'f'.repeat(64), 'cnitool-77383ca0a0715733ca6f']) {
    expect(readAttachment(env({ CNI_CONTAINERID: id })).containerId).toBe(id);
    expect(isNetworkName(id)).toBe(true);
  }
  expect(isNetworkName('a/b')).toBe(false);
});

it.each([
  '',
  '.',
  '..',
  'sixteen-bytes-xx',
  'a/b',
  'a:b',
  'a b',
  'a\tb',
  'a\u00a0b',
  'eth%d',
  'ääääääää',
  'all',
  'default',
])('refuses the interface name %j', (name) => {
  expect(objectionToInterfaceName(name)).toBeDefined();
});

it.each(['eth0', 'fifteen-bytes-x', 'net1.5', 'a@b', 'äää'])('takes the interface name %j', (name) => {
  expect(objectionToInterfaceName(name)).toBeUndefined();
});

it('names only the missing variables that the command needs', () => {
  expect(() => requireVariables({ CNI_PATH: '' }, ['CNI_PATH', 'CNI_IFNAME'])).toThrow(
    'required env variables [CNI_PATH,CNI_IFNAME] missing',
  );
  expect(() => requireVariables({ CNI_PATH: 'x' }, ['CNI_PATH'])).not.toThrow();
});
