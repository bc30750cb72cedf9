import { describe, expect, it } from 'vitest';
import { atOnce, parseIp } from '../../core/index.ts';
import { nearMisses } from './near-misses.ts';
import { parseQuestion } from './parse.ts';
import { QuestionError } from './question.ts';

const address = parseIp;

describe('a question', () => {
  it.each([
    ['svc/shop/web', { kind: 'service', namespace: 'shop', name: 'web', port: undefined }],
    ['svc/shop/web:080', { kind: 'service', namespace: 'shop', name: 'web', port: '80' }],
    ['svc/shop/web:http', { kind: 'service', namespace: 'shop', name: 'web', port: 'http' }],
    ['shop/web:http', { kind: 'service', namespace: 'shop', name: 'web', port: 'http' }],
    ['shop/web', { kind: 'service', namespace: 'shop', name: 'web', port: undefined }],
    ['pod/shop/web-1:8080', { kind: 'pod', namespace: 'shop', name: 'web-1', port: 8080 }],
    ['node:30080', { kind: 'node-port', port: 30080 }],
    ['10.96.0.10', { kind: 'address', address: address('10.96.0.10') }],
    ['10.96.0.10:80', { kind: 'address', address: address('10.96.0.10'), port: 80 }],
    ['fd00::10', { kind: 'address', address: address('fd00::10') }],
    ['[fd00::10]:80', { kind: 'address', address: address('fd00::10'), port: 80 }],
  ])('%s is read', (text, destination) => {
    expect(parseQuestion({ destination: text }).destination).toEqual(destination);
  });

  it.each([
    '',
    'web',
    'svc/web',
    'pod/web',
    '10.96.0.0/16',
    'node:0',
    '10.96.0.10:99999',
    'svc/shop/web:0',
    'svc/shop/web:-1',
    'svc/shop/web:99999',
    'pod/shop/web-1:0',
    '[10.96.0.10',
    'svc/a/b/c',
    '10.96.0.10:80:80',
    '0.0.0.0:80',
    '::',
    '224.0.0.251:5353',
    '[ff02::fb]:5353',
    '255.255.255.255:67',
  ])('"%s" is none, and what is expected is said', (text) => {
    expect(() => parseQuestion({ destination: text })).toThrow(QuestionError);
  });

  it('has a source and a protocol', () => {
    const asked = { destination: 'node:30080', source: 'node', protocol: 'udp' };
    expect(parseQuestion(asked)).toMatchObject({ source: { kind: 'node' }, protocol: 'UDP' });
    expect(() => parseQuestion({ ...asked, source: 'nod' })).toThrow('Cannot read "nod" as a source');
    for (const nobody of ['0.0.0.0', '::', '224.0.0.1', 'ff02::1', '255.255.255.255'])
      expect(() => parseQuestion({ ...asked, source: nobody })).toThrow('expected an address that one host has');
    expect(() => parseQuestion({ ...asked, protocol: 'icmp' })).toThrow('expected tcp, udp or sctp');
  });
});

describe('near misses', () => {
  it('are names with a letter wrong, or in another namespace', () => {
    const near = (wanted: string) =>
      atOnce(nearMisses(wanted, ['shop/web', 'shop/cart', 'other/wbe', 'kube-system/kube-dns']));
    expect(near('shop/wbe')).toEqual(['other/wbe', 'shop/web']);
    expect(near('default/kube-dns')).toEqual(['kube-system/kube-dns']);
    expect(near('nothing/like-it')).toEqual([]);
  });
});
