import { testMoves } from './migration.ts';

testMoves('nftables');
