import { expect, it } from 'vitest';
import { parseIp } from '../../../../core/index.ts';
import { clientsAmong } from './ipvs-templates.ts';
import { kernelTicks, recentClients } from './recent-clients.ts';

// As a Debian kernel 6.1 (CONFIG_HZ 250) prints them.
const TIMER_LIST = 'Timer List Version: v0.9\nHRTIMER_MAX_CLOCK_BASES: 8\n\ncpu: 0\njiffies: 4295142296\n';

it('finds out how fast the kernel counts', () => {
  // 1000 s after the start: 2^32 + 700 x 250.
  expect(kernelTicks(TIMER_LIST, 1000)).toEqual({ now: 4_295_142_296, perSecond: 250 });
  expect(kernelTicks('', 1000)).toBeUndefined();
  expect(kernelTicks(TIMER_LIST, 90_000)).toBeUndefined();
});

it('tells who is remembered by match recent, and for how long', () => {
  const sources = [
    { ip: parseIp('10.244.1.7'), lastSeen: 4_295_139_796 },
    { ip: parseIp('10.244.1.8'), lastSeen: 4_295_117_296 },
    { ip: parseIp('fd00:244::9'), lastSeen: 4_295_142_296 },
  ];
  expect(recentClients(sources, 60, kernelTicks(TIMER_LIST, 1000))).toEqual([
    { client: '10.244.1.7', remainingSeconds: 50 },
    { client: 'fd00:244::9', remainingSeconds: 60 },
  ]);
  expect(recentClients(sources, 60, undefined)).toHaveLength(3);
});

it('tells the clients of a port by the templates of persistence of IPVS', () => {
  const template = {
    protocol: 6,
    client: parseIp('10.244.1.7'),
    clientPort: 0,
    virtual: parseIp('10.96.0.70'),
    virtualPort: 80,
    server: parseIp('10.244.1.2'),
    serverPort: 8080,
    state: 'NONE',
    expiresSeconds: 42,
  };
  const templates = [
    template,
    { ...template, client: parseIp('10.244.1.8'), virtual: parseIp('10.96.0.71') },
    { ...template, protocol: 17 },
    { ...template, client: parseIp('192.0.2.1'), virtual: parseIp('192.0.2.9'), virtualPort: 30080 },
    { ...template, client: parseIp('2001:db8::1'), virtual: parseIp('2001:db8::9'), virtualPort: 30080 },
  ];
  const port = {
    family: 'IPv4',
    protocol: 'TCP',
    clusterIp: '10.96.0.70',
    port: 80,
    nodePort: 30080,
    externalIps: [],
    loadBalancerVips: [],
  } as const;
  expect(clientsAmong(templates, port)).toEqual([
    { client: '10.244.1.7', endpoint: '10.244.1.2:8080', remainingSeconds: 42 },
    { client: '192.0.2.1', endpoint: '10.244.1.2:8080', remainingSeconds: 42 },
  ]);
});
