import { expect, it } from 'vitest';
import { parseIp } from '../../core/index.ts';
import { parseRecentList } from './recent-list.ts';

it('reads addresses of both families as the kernel prints them', () => {
  const text = [
    'src=10.244.1.2 ttl: 63 last_seen: 4303212000 oldest_pkt: 1 4303212000',
    'src=fd00:0010:0244:0001:0000:0000:0000:0002 ttl: 63 last_seen: 4303212044 oldest_pkt: 2 4303212000, 4303212044',
    '',
  ].join('\n');
  expect(parseRecentList(text)).toEqual([
    { ip: parseIp('10.244.1.2'), lastSeen: 4_303_212_000 },
    { ip: parseIp('fd00:10:244:1::2'), lastSeen: 4_303_212_044 },
  ]);
  expect(parseRecentList('')).toEqual([]);
});
