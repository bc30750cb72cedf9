import { expect, it } from 'vitest';
import { parseCidr } from '../../../core/index.ts';
import { decodePolicyRule } from './policy-rules.ts';

/** Headers and attributes by hand, after <linux/fib_rules.h>. */
const RULES: readonly (readonly [string, string, ReturnType<typeof decodePolicyRule>])[] = [
  [
    // ip rule add sport 1024-2048 uidrange 1000-2000 prio 100
    'ports and users',
    '02000000 00000006 00000000 08000600 64000000 0c001400 e8030000 d0070000 08001700 00040008',
    { priority: 100, sourcePorts: [1024, 2048], destinationPorts: undefined, user: 1000, byClass: false },
  ],
  [
    // ip rule add tos 0x10 dport 53-53, of preference 0
    'a class and a port',
    '02000010 00000006 00000000 08001800 35003500',
    { priority: 0, sourcePorts: undefined, destinationPorts: [53, 53], user: undefined, byClass: true },
  ],
  [
    // ip rule add from 10.244.1.0/24 pref 50
    'sources',
    '02001800 fe000001 00000000 08000200 0af40100 08000600 32000000',
    {
      priority: 50,
      source: parseCidr('10.244.1.0/24'),
      sourcePorts: undefined,
      destinationPorts: undefined,
      user: undefined,
      byClass: false,
    },
  ],
  [
    // ip rule add ipproto tcp pref 50
    'a protocol',
    '02000000 fe000001 00000000 08000600 32000000 05001600 06000000',
    {
      priority: 50,
      sourcePorts: undefined,
      destinationPorts: undefined,
      user: undefined,
      protocol: 6,
      byClass: false,
    },
  ],
  [
    // ip rule add not from all lookup local pref 50
    'what packets do not have, and the table of own addresses',
    '02000000 ff000001 02000000 08000600 32000000',
    {
      priority: 50,
      sourcePorts: undefined,
      destinationPorts: undefined,
      user: undefined,
      byClass: false,
      isInverted: true,
      isOfLocal: true,
    },
  ],
  [
    'a class as newer kernels write it',
    '02000000 00000006 00000000 05001900 04000000',
    { priority: 0, sourcePorts: undefined, destinationPorts: undefined, user: undefined, byClass: true },
  ],
];

it.each(RULES)('reads what a policy rule asks for: %s', (_, hex, rule) => {
  expect(decodePolicyRule(Buffer.from(hex.replaceAll(' ', ''), 'hex'))).toEqual(rule);
});
