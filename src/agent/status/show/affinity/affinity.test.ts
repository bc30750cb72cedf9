import { expect, it } from 'vitest';
import { parseTemplates } from './ipvs-templates.ts';
import { kernelTicks, parseRecentList } from './recent-list.ts';

// Lines as a Debian kernel 6.1 (CONFIG_HZ 250) prints them.
const TIMER_LIST = 'Timer List Version: v0.9\nHRTIMER_MAX_CLOCK_BASES: 8\n\ncpu: 0\njiffies: 4295142296\n';

it('finds out how fast the kernel counts', () => {
  // 1000 s after the start: 2^32 + 700 x 250.
  expect(kernelTicks(TIMER_LIST, 1000)).toEqual({ now: 4_295_142_296, perSecond: 250 });
  expect(kernelTicks('', 1000)).toBeUndefined();
  expect(kernelTicks(TIMER_LIST, 90_000)).toBeUndefined();
});

it('reads who is remembered by match recent, and for how long', () => {
  const text = [
    'src=10.244.1.7 ttl: 64 last_seen: 4295139796 oldest_pkt: 2 4295139000, 4295139796',
    'src=10.244.1.8 ttl: 64 last_seen: 4295117296 oldest_pkt: 1 4295117296',
    'src=fd00:0244:0000:0000:0000:0000:0000:0009 ttl: 64 last_seen: 4295142296 oldest_pkt: 1 4295142296',
    '',
  ].join('\n');
  expect(parseRecentList(text, 60, kernelTicks(TIMER_LIST, 1000))).toEqual([
    { client: '10.244.1.7', remainingSeconds: 50 },
    { client: 'fd00:244::9', remainingSeconds: 60 },
  ]);
  expect(parseRecentList(text, 60, undefined)).toHaveLength(3);
});

it('reads the templates of persistence of IPVS, and no connections', () => {
  const text = [
    'Pro FromIP   FPrt ToIP     TPrt DestIP   DPrt State       Expires PEName PEData',
    'TCP 0AF40107 9C40 0A600046 0050 0AF40102 1F90 ESTABLISHED     899',
    'TCP 0AF40107 0000 0A600046 0050 0AF40102 1F90 NONE             42',
    'TCP 0AF40108 0000 0A600047 0050 0AF40102 1F90 NONE             42',
    'UDP 0AF40107 0000 0A600046 0050 0AF40102 1F90 NONE             42',
  ].join('\n');
  const port = {
    protocol: 'TCP',
    clusterIp: '10.96.0.70',
    port: 80,
    nodePort: 0,
    externalIps: [],
    loadBalancerVips: [],
  };
  expect(parseTemplates(text, port)).toEqual([
    { client: '10.244.1.7', endpoint: '10.244.1.2:8080', remainingSeconds: 42 },
  ]);
});
