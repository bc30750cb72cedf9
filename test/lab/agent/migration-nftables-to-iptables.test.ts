import { testMove } from './migration.ts';

testMove('nftables', 'iptables');
