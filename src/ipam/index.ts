export { checkAvailable, collectGone, collectInvalid, hasGone, isUnderWay } from './collect.ts';
export { type Collected, formatCollected } from './collected.ts';
export {
  DEFAULT_DATA_DIR,
  IPAM_KEYS,
  type IpamConfig,
  type IpamRoute,
  type IpamWishes,
  parseDataDir,
  parseIpamConfig,
} from './config.ts';
export type { AttachmentNote, JournalEntry } from './journal.ts';
export { journalEntries, journaledNetworks } from './network-journals.ts';
export type { PlannedReservation } from './plan.ts';
export type { AddressRange, RangeSet } from './range.ts';
export type { Owner } from './record.ts';
export { type DnsSettings, parseResolvConf, readResolvConf } from './resolv-conf.ts';
export {
  addressesHeld,
  completeAttachment,
  journalEntry,
  noteAttachment,
  type ReservationRequest,
  release,
  reserve,
  type StoreLocation,
} from './store.ts';
