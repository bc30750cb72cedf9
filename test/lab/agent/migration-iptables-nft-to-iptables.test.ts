import { testMove } from './migration.ts';

testMove('iptables-nft', 'iptables');
