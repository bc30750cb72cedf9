export { BackgroundFailure, inBackground, stopAll, tellFailure } from './background.ts';
export { ByteWriter, formatMac, hashBytes, readBe16, readBe32, readU16, readU32, sameBytes } from './bytes.ts';
export { type Clock, secondsSince, sleep, systemClock, type Timer } from './clock.ts';
export {
  type ComparedPart,
  type Drift,
  driftLines,
  driftText,
  nothingToCompare,
} from './drift/drift.ts';
export type { ErrorCode } from './error-codes.ts';
export {
  attempt,
  describeErrno,
  type ErrnoMeaning,
  type ErrorFacts,
  errorText,
  ifPresent,
  isExists,
  isForeignLock,
  isNotFound,
  isShortage,
  isUnsupported,
  KernelError,
  NodeplaneError,
} from './errors.ts';
export { FolderWatch } from './folder-watch.ts';
export {
  type Cidr,
  cidrContains,
  cidrCovers,
  cidrEquals,
  cidrsOverlap,
  formatCidr,
  lastOf,
  networkOf,
  parseAddressWithPrefix,
  parseCidr,
  prefixMask,
  tryParseCidr,
} from './ip/cidr.ts';
export {
  addressBits,
  compareIp,
  formatIp,
  formatIpPort,
  IP_FAMILIES,
  type IpAddress,
  type IpFamily,
  ipEquals,
  ipFamilyOf,
  ipFromBytes,
  isLoopback,
  parseIp,
  specialRange,
  tryParseIp,
  withPort,
} from './ip/ip.ts';
export {
  type IpSpan,
  ipFromValue,
  ipValue,
  isWithin,
  spanBetween,
  spanContains,
  spanOfCidr,
  spansOverlap,
} from './ip/ip-number.ts';
export {
  IP_PROTOCOLS,
  type IpProtocol,
  ipProtocolName,
  type ProtocolWord,
  protocolText,
  protocolWord,
} from './ip/ip-protocols.ts';
export { isMapping, JSON_LIMITS, jsonText, parseJson, plainText } from './json.ts';
export { NODE_PATHS } from './node-paths.ts';
export { Pace, type PaceOptions, REPAIRS } from './pace.ts';
export { readGivenFile } from './read-file.ts';
export { type Removal, Removals } from './removals.ts';
export { compareText, insertSorted, lowerBound, type Order, removeSorted, sameTexts, trimmed } from './sorted.ts';
export { type SyncCheck, SyncRunner, type SyncRunnerOptions } from './sync-runner.ts';
export { durationText } from './words/duration.ts';
export { editDistance, nearestWord } from './words/edit-distance.ts';
export { settingName } from './words/setting-name.ts';
export { shellWord } from './words/shell-word.ts';
export { atOnce, inSlices, type Rest, type Steps, yielder } from './yielding.ts';
