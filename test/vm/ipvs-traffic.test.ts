import { testTraffic } from '../dataplane/traffic.ts';

testTraffic('ipvs');
