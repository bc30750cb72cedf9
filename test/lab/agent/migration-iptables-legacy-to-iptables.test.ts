import { testMove } from './migration.ts';

testMove('iptables-legacy', 'iptables');
