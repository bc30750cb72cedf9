import { expect, it } from 'vitest';
import { parseIp, readBe16 } from '../../core/index.ts';
import { type Host, walkPacket } from '../walk/index.ts';
import { LegacyRules } from './legacy-rules.ts';

const ETH0 = { index: 2, name: 'eth0' };
const HOST: Host = {
  addressType: () => 1,
  interfaceTo: () => ETH0,
  addressOn: () => undefined,
  redirectedTo: () => undefined,
};

/** All ways of a packet of TCP through a table with one chain. */
function walked(table: 'nat' | 'mangle', rules: readonly string[]) {
  const chains = new Map([['PREROUTING', { builtIn: true, rules }]]);
  const { branches } = walkPacket(
    { protocol: 'tcp', source: parseIp('10.0.0.1'), destination: parseIp('10.96.0.1'), destinationPort: 80 },
    { origin: ETH0, sources: [new LegacyRules({ IPv4: new Map([[table, chains]]) })], host: HOST },
  );
  return branches;
}

it('rules in a row that draw for one endpoint each are one draw', () => {
  const rules = Array.from({ length: 1000 }, (_, index) => {
    const chance = index < 999 ? `-m statistic --mode random --probability ${(1 / (1000 - index)).toFixed(11)} ` : '';
    return `-p tcp -m comment --comment "one of them" ${chance}-j DNAT --to-destination 10.244.1.1:${index}`;
  });
  const ways = walked('nat', ['-p udp -m statistic --mode random --probability 0.5 -j DROP', ...rules]);
  expect(ways.map(({ result }) => readBe16(result.packet.ends.destinationPort.bytes, 0))).toEqual([...rules.keys()]);
  expect(Math.max(...ways.map(({ choices }) => choices.length))).toBe(1);
});

it('draws again behind a rule that was drawn and ends nothing', () => {
  const [half, quarter] = ['0.5', '0.25'].map((chance) => `-m statistic --mode random --probability ${chance}`);
  const ways = walked('mangle', [`${half} -j MARK --set-xmark 0x1/0x1`, `${quarter} -j MARK --set-xmark 0x2/0x2`]);
  expect(ways.map(({ result }) => result.packet.mark.bytes[0])).toEqual([3, 1, 2, 0]);
});

it('rules that ask for different protocols, or draw inversely, draw for themselves', () => {
  const draw = '-m statistic --mode random';
  const ways = walked('mangle', [
    `-p tcp ${draw} --probability 0.5 -j MARK --set-xmark 0x1/0x1`,
    `-p udp ${draw} --probability 0.5 -j MARK --set-xmark 0x2/0x2`,
    `-p tcp ${draw} ! --probability 0.5 -j MARK --set-xmark 0x4/0x4`,
  ]);
  expect(ways.map(({ result }) => result.packet.mark.bytes[0])).toEqual([5, 1, 4, 0]);
});
