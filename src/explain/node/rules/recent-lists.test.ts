import { expect, it } from 'vitest';
import { parseRecent } from './recent-lists.ts';

it('reads addresses of both families as the kernel prints them', () => {
  const text = [
    'src=10.244.1.2 ttl: 63 last_seen: 4303212000 oldest_pkt: 1 4303212000',
    'src=fd00:0010:0244:0001:0000:0000:0000:0002 ttl: 63 last_seen: 4303212044 oldest_pkt: 2 4303212000, 4303212044',
    '',
  ].join('\n');
  expect([...parseRecent(text)]).toEqual(['10.244.1.2', 'fd00:10:244:1::2']);
  expect(parseRecent('').size).toBe(0);
});
