import { testMoves } from './migration.ts';

testMoves('iptables-nft');
