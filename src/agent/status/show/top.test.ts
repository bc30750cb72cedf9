import { expect, it } from 'vitest';
import { parseIp } from '../../../core/index.ts';
import type { Flow } from '../../../netlink/conntrack/index.ts';
import type { ServiceReport } from '../status.ts';
import { serviceAt, tableUse, topText } from './top.ts';

const flow = (to: string, port: number, by = '10.244.1.5', byPort = 8080, protocol = 6): Flow => ({
  family: 'IPv4',
  protocol,
  original: { source: parseIp('10.244.1.9'), destination: parseIp(to), sourcePort: 40000, destinationPort: port },
  reply: { source: parseIp(by), destination: parseIp('10.244.1.9'), sourcePort: byPort, destinationPort: 40000 },
  id: 1,
  zone: 0,
  tuple: new Uint8Array(),
});

it('counts connections by where they were made to, and leaves out those nobody translated', () => {
  const flows = [
    flow('10.96.0.20', 53, '10.244.1.6', 53, 17),
    flow('10.96.0.10', 80),
    flow('10.96.0.10', 80, '10.244.2.5'),
    flow('198.51.100.7', 443, '198.51.100.7', 443),
    // ICMP has no ports.
    flow('10.96.0.10', 0, '10.244.1.5', 0, 1),
  ];
  const use = tableUse(flows);
  expect(use).toMatchObject({ total: 5, translated: 3 });
  expect(use.destinations).toEqual([
    { family: 'IPv4', ip: '10.96.0.10', port: 80, protocol: 'TCP', connections: 2 },
    { family: 'IPv4', ip: '10.96.0.20', port: 53, protocol: 'UDP', connections: 1 },
  ]);
});

it('names whose they are', () => {
  const port = { family: 'IPv4', protocol: 'TCP', clusterIp: '10.96.0.10', port: 80, nodePort: 30080 };
  const ports = [{ ...port, externalIps: ['203.0.113.1'], loadBalancerVips: [] }];
  const services = [{ name: 'shop/web', ports }] as unknown as ServiceReport[];
  const at = (ip: string, number: number, protocol = 'TCP') =>
    serviceAt({ family: 'IPv4', ip, port: number, protocol, connections: 1 }, services);
  expect([at('10.96.0.10', 80), at('203.0.113.1', 80), at('192.168.50.1', 30080)]).toEqual(Array(3).fill('shop/web'));
  expect([at('10.96.0.10', 81), at('10.96.0.10', 80, 'UDP'), at('10.96.0.11', 80)]).toEqual([null, null, null]);
});

it('shows a table', () => {
  const use = tableUse([flow('10.96.0.10', 80), flow('10.96.0.99', 80)]);
  const named = use.destinations.map((one, index) => ({ ...one, service: index === 0 ? 'shop/web' : null }));
  expect(topText(use, named)).toBe(
    [
      '2 connections tracked, of which 2 were sent on to an endpoint',
      '',
      'CONNECTIONS  SERVICE            MADE TO',
      '          1  shop/web           10.96.0.10:80  TCP',
      '          1  (no Service here)  10.96.0.99:80  TCP',
      '',
    ].join('\n'),
  );
});
