import { expect, it } from 'vitest';
import { settingName } from '../index.ts';

it('has dots between folders, and a slash where a link has a dot', () => {
  expect(settingName('net/ipv4/ip_forward')).toBe('net.ipv4.ip_forward');
  expect(settingName('net/ipv4/conf/eth0.5/rp_filter')).toBe('net.ipv4.conf.eth0/5.rp_filter');
});
