import { expect, it } from 'vitest';
import { type Packet, walkPacket } from './packet-walk.ts';

const packet: Packet = { source: '10.0.0.1', destination: '10.96.0.1', protocol: 'tcp', port: 80 };
const walk = (chains: Record<string, readonly string[]>, more: Partial<Packet> = {}) =>
  walkPacket(new Map(Object.entries(chains)), 'ENTRY', { ...packet, ...more });

it('comes back from a jump, also by RETURN, and goes on with the next rule', () => {
  const chains = { ENTRY: ['-j A', '-j DROP'], A: ['-p udp -j ACCEPT', '-j RETURN', '-j ACCEPT'] };
  expect(walk(chains)).toEqual({ destinations: [], verdict: 'DROP', masqueraded: false, met: 4 });
});

it('does not come back to a chain left by goto', () => {
  const chains = { ENTRY: ['-j A', '-j DROP'], A: ['-g B', '-j ACCEPT'], B: ['-p udp'] };
  expect(walk(chains)).toMatchObject({ verdict: 'DROP', met: 4 });
});

it('is sent to its destination, marked on the way', () => {
  const chains = {
    ENTRY: ['-d 10.96.0.1/32 -p tcp -m tcp --dport 80 -j SVC', '-j DROP'],
    SVC: ['-j MARK --or-mark 0x4000', '-p tcp -m tcp -j DNAT --to-destination 10.244.1.1:8080'],
  };
  expect(walk(chains)).toEqual({
    destinations: ['10.244.1.1:8080'],
    verdict: undefined,
    masqueraded: true,
    met: 3,
  });
});

it('follows both outcomes of a chance', () => {
  const chance = '-m statistic --mode random --probability 0.5';
  const chains = {
    ENTRY: [`${chance} -j A`, '-j B'],
    A: ['-j DNAT --to-destination 10.244.1.1:80'],
    B: ['-j DNAT --to-destination 10.244.1.2:80'],
  };
  expect(walk(chains).destinations).toEqual(['10.244.1.1:80', '10.244.1.2:80']);
});

it.each<[string, Partial<Packet>, boolean]>([
  ['-s 10.0.0.0/8', {}, true],
  ['! -s 10.0.0.0/8', {}, false],
  ['-d 10.0.0.1/255.0.0.255', {}, true],
  ['-d 10.0.0.2/255.0.0.255', {}, false],
  ['-d fd00::/16', { source: 'fd00::1', destination: 'fd00::2' }, true],
  ['-i cni0', {}, false],
  ['! -i cni0', { inInterface: 'eth0' }, true],
  ['-p tcp -m tcp --dport 80:90', {}, true],
  ['-p tcp -m tcp --dport 81:90', {}, false],
  ['-m addrtype --dst-type LOCAL', {}, false],
  ['-m addrtype --dst-type LOCAL', { nodeAddresses: ['10.96.0.1'] }, true],
  ['-m addrtype ! --src-type LOCAL', { nodeAddresses: ['10.96.0.1'] }, true],
  ['-m recent --rcheck --seconds 600 --name X', {}, false],
  ['-m comment --comment "-s 1.2.3.4/32 -j DROP"', {}, true],
  ['-m conntrack --ctstate NEW', {}, true],
])('matches "%s" of %j: %s', (match, more, holds) => {
  expect(walk({ ENTRY: [`${match} -j ACCEPT`] }, more).verdict).toBe(holds ? 'ACCEPT' : undefined);
});

it('needs its first chain', () => {
  expect(() => walk({ OTHER: [] })).toThrow('No chain ENTRY');
});
