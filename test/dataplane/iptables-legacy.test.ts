import { testTraffic } from './traffic.ts';

testTraffic('iptables, legacy variant');
