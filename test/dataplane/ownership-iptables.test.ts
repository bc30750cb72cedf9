import { testOwnership } from './ownership.ts';

testOwnership('iptables, nft variant');
