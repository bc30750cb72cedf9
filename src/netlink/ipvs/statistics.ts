import { readU64 } from '../integer.ts';
import { IPVS_STATS64 } from '../uapi/ip-vs.ts';

/** What a virtual server or a destination has carried since it was made. */
export interface IpvsStatistics {
  readonly connections: bigint;
  readonly packetsIn: bigint;
  readonly packetsOut: bigint;
  readonly bytesIn: bigint;
  readonly bytesOut: bigint;
}

export const NO_STATISTICS: IpvsStatistics = {
  connections: 0n,
  packetsIn: 0n,
  packetsOut: 0n,
  bytesIn: 0n,
  bytesOut: 0n,
};

/** Decodes the value of IPVS_SVC_ATTR_STATS64 (Linux 4.1) or IPVS_DEST_ATTR_STATS64. Throws ERR_NETLINK_DECODE. */
export function decodeStatistics(value: Uint8Array): IpvsStatistics {
  const statistics = IPVS_STATS64.decode(value);
  const read = (name: Exclude<keyof typeof statistics, 'unknown'>) => readU64(statistics[name], name);
  return {
    connections: read('IPVS_STATS_ATTR_CONNS'),
    packetsIn: read('IPVS_STATS_ATTR_INPKTS'),
    packetsOut: read('IPVS_STATS_ATTR_OUTPKTS'),
    bytesIn: read('IPVS_STATS_ATTR_INBYTES'),
    bytesOut: read('IPVS_STATS_ATTR_OUTBYTES'),
  };
}
