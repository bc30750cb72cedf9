import { describe, expect, it } from 'vitest';
import { parseIp } from '../../core/index.ts';
import { type FindServices, understand } from './question.ts';
import { durationOf } from './show-trace.ts';

describe('a question', () => {
  const port = { portName: 'http', protocol: 'TCP', clusterIp: '10.96.0.12', port: 80, externalIps: ['192.0.2.7'] };
  const find = (async (name: string) => [
    {
      name,
      ports: [
        { ...port, loadBalancerVips: [] },
        { ...port, clusterIp: 'fd00::c', externalIps: [], loadBalancerVips: [] },
      ],
    },
  ]) as unknown as FindServices;
  const ask = (source: string, destination: string, protocol = 'tcp') =>
    understand({ source, destination, protocol }, find);

  it.each([
    ['any', '10.96.0.12:80', ['10.96.0.12']],
    ['fd00::1', '[fd00::c]:80', ['fd00::c']],
    ['10.244.1.7', 'svc/shop/web', ['10.96.0.12', '192.0.2.7']],
    ['fd00::1', 'shop/web:http', ['fd00::c']],
    ['any', 'shop/web:80', ['10.96.0.12', '192.0.2.7', 'fd00::c']],
  ])('%s -> %s', async (source, destination, expected) => {
    const { tuples } = await ask(source, destination);
    expect(tuples.map((tuple) => tuple.destination)).toEqual(expected.map(parseIp));
  });

  it.each([
    ['web-1', '10.96.0.12:80', 'tcp', 'The source is an address'],
    ['any', '10.96.0.12', 'tcp', 'The destination is'],
    ['any', '10.96.0.12:0', 'tcp', 'The destination is'],
    ['fd00::1', '10.96.0.12:80', 'tcp', 'different families'],
    ['any', 'shop/web:81', 'tcp', 'has no TCP port 81'],
    ['any', 'shop/web', 'udp', 'has no UDP port'],
    ['any', '10.96.0.12:80', 'icmp', '--proto is'],
  ])('%s -> %s %s is refused: %s', async (source, destination, protocol, message) => {
    await expect(ask(source, destination, protocol)).rejects.toThrow(message);
  });

  it('names the command that shows more, as it asks the same agent', async () => {
    const wrong = understand({ source: 'any', destination: 'shop/web:81', protocol: 'tcp' }, find, '127.0.0.1:11249');
    await expect(wrong).rejects.toThrow('"nodeplane services shop/web --address 127.0.0.1:11249" shows');
  });

  it('has a time', () => {
    expect(['10s', '500ms', '2m', '0.5s'].map(durationOf)).toEqual([10_000, 500, 120_000, 500]);
    for (const wrong of ['', '10', '0s', '11m', '-1s']) expect(() => durationOf(wrong)).toThrow('--live is');
  });
});
