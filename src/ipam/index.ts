export {
  IPAM_KEYS,
  type IpamConfig,
  parseDataDir,
  parseIpamConfig,
  ROUTE_NUMBERS,
  type RouteNumbers,
} from './config.ts';
export type { PlannedReservation } from './ranges/plan.ts';
export { type DnsSettings, dnsSettings, readResolvConf } from './resolv-conf.ts';
export {
  checkAvailable,
  collectGone,
  collectInvalid,
  entriesGone,
  entriesUnderWay,
  hasGone,
  isMadeHere,
  isUnderWay,
} from './store/collect.ts';
export { type Collected, formatCollected } from './store/collected.ts';
export type { AttachmentNote, JournalEntry } from './store/journal.ts';
export { damagedNotes, journalEntries, journaledNetworks } from './store/network-journals.ts';
export { podCapacity, reservations, reservedAddresses } from './store/reserved.ts';
export { hasLost, type Restored, restoreReservations } from './store/restore.ts';
export {
  addressesHeld,
  beginDeletion,
  completeAttachment,
  isNoted,
  journalEntry,
  noteAttachment,
  release,
  reserve,
  type StandingAttachment,
  type StoreLocation,
} from './store/store.ts';
