import { testContinuity } from '../dataplane/continuity.ts';

// Here because only the VM's kernel has IPVS.
testContinuity('ipvs', {
  // A client is remembered as long as one of its connections is, those that have ended included.
  periods: ['--ipvs-min-sync-period', '0s', '--ipvs-sync-period', '1s', '--ipvs-tcpfin-timeout', '1s'],
  destroy: ['ipvsadm', '-C'],
});
