import { testContinuity } from './continuity.ts';

testContinuity('nftables', {
  // The kernel tells of it: waiting for the sync period would take longer than the test.
  periods: ['--iptables-min-sync-period', '0s', '--iptables-sync-period', '10m'],
  destroy: ['nft', 'delete', 'table', 'ip', 'nodeplane'],
});
