import { testTraffic } from './traffic.ts';

testTraffic('ipvs');
