import { testOwnership } from './ownership.ts';

testOwnership('nftables');
