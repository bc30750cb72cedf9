import { testTraffic } from './traffic.ts';

testTraffic('nftables');
