import { testContinuity } from './continuity.ts';

testContinuity('iptables, nft variant', {
  periods: ['--iptables-min-sync-period', '0s', '--iptables-sync-period', '1s'],
  destroy: ['iptables-nft', '-t', 'nat', '-F'],
});
