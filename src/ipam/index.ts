export {
  IPAM_KEYS,
  type IpamConfig,
  type IpamRoute,
  type IpamWishes,
  parseDataDir,
  parseIpamConfig,
} from './config.ts';
export type { PlannedReservation } from './ranges/plan.ts';
export type { AddressRange, RangeSet } from './ranges/range.ts';
export { type DnsSettings, parseResolvConf, readResolvConf } from './resolv-conf.ts';
export { checkAvailable, collectGone, collectInvalid, hasGone, isUnderWay } from './store/collect.ts';
export { type Collected, formatCollected } from './store/collected.ts';
export type { AttachmentNote, JournalEntry } from './store/journal.ts';
export { journalEntries, journaledNetworks } from './store/network-journals.ts';
export type { Owner } from './store/record.ts';
export {
  addressesHeld,
  completeAttachment,
  journalEntry,
  noteAttachment,
  type ReservationRequest,
  release,
  reserve,
  type StoreLocation,
} from './store/store.ts';
