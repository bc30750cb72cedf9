import { testTraffic } from '../dataplane/traffic.ts';

// Here because only the VM's kernel has IPVS.
testTraffic('ipvs');
