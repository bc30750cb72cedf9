export { type Collected, checkAvailable, collectGone, collectInvalid, isUnderWay } from './collect.ts';
export {
  DEFAULT_DATA_DIR,
  IPAM_KEYS,
  type IpamConfig,
  type IpamRoute,
  type IpamWishes,
  parseDataDir,
  parseIpamConfig,
} from './config.ts';
export type { JournalEntry } from './journal.ts';
export type { PlannedReservation } from './plan.ts';
export type { AddressRange, RangeSet } from './range.ts';
export type { Owner } from './record.ts';
export { type DnsSettings, parseResolvConf, readResolvConf } from './resolv-conf.ts';
export {
  addressesHeld,
  completeReservation,
  journalEntry,
  type ReservationRequest,
  release,
  reserve,
  type StoreLocation,
} from './store.ts';
