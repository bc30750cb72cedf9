import { testTraffic } from './traffic.ts';

testTraffic('iptables, nft variant');
