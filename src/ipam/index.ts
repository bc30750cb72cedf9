export { DEFAULT_DATA_DIR, type IpamConfig, type IpamRoute, parseDataDir, parseIpamConfig } from './config.ts';
export type { PlannedReservation } from './plan.ts';
export type { AddressRange, RangeSet } from './range.ts';
export type { Owner } from './record.ts';
export { type DnsSettings, parseResolvConf, readResolvConf } from './resolv-conf.ts';
export { type ReservationRequest, release, reserve, type StoreLocation } from './store.ts';
