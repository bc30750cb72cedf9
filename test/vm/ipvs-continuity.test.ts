import { testContinuity } from '../dataplane/continuity.ts';

// Here because only the VM's kernel has IPVS.
testContinuity('ipvs', {
  periods: ['--ipvs-min-sync-period', '0s', '--ipvs-sync-period', '1s'],
  destroy: ['ipvsadm', '-C'],
});
