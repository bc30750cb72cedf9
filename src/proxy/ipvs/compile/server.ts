import { formatIpPort, type IpAddress, type IpProtocol, ipProtocolName } from '../../../core/index.ts';
import {
  IP_VS_SVC_F_SCHED_MH_FALLBACK,
  IP_VS_SVC_F_SCHED_MH_PORT,
  type VirtualServer,
  type VirtualServerKey,
} from '../../../netlink/ipvs/index.ts';

/** The scheduler that goes by the client's address: ip_vs_sh. */
export const BY_SOURCE = 'sh';

/** A virtual server as it should be. */
export interface Server {
  /** Of `serverKey`. */
  readonly key: string;
  readonly virtual: VirtualServer;
  readonly protocol: IpProtocol;
  /** By `ip:port`. */
  readonly endpoints: ReadonlyMap<string, ServerEndpoint>;
  /** Key of the Service port it belongs to. */
  readonly owner: string;
}

/** Where a virtual server sends connections: one of its destinations. */
export interface ServerEndpoint {
  readonly address: IpAddress;
  readonly port: number;
}

/** Identity of a virtual server as text: `10.96.0.1:80/TCP`, as kube-proxy writes it, or `mark 0x6e700001`. */
export function serverKey(key: VirtualServerKey): string {
  if (key.kind === 'mark') return `mark 0x${key.mark.toString(16)}`;
  return `${formatIpPort(key.address, key.port)}/${ipProtocolName(key.protocol) ?? key.protocol}`;
}

/** Whether the kernel would keep the virtual server as it is. */
export function sameVirtualServer(a: VirtualServer, b: VirtualServer): boolean {
  return (
    a.scheduler === b.scheduler &&
    a.flags === b.flags &&
    a.persistenceSeconds === b.persistenceSeconds &&
    (a.persistenceMask?.join() ?? '') === (b.persistenceMask?.join() ?? '')
  );
}

/**
 * A scheduler and its flags: `mh`, `mh,mh-fallback`. Maglev hashes the source port too, as in kube-proxy, unless told
 * otherwise by `mh,mh-no-port`.
 */
export function parseScheduler(text: string): { readonly scheduler: string; readonly flags: number } {
  const [scheduler = '', ...options] = text.split(',').map((word) => word.trim());
  if (scheduler !== 'mh') return { scheduler, flags: 0 };
  const port = options.includes('mh-no-port') ? 0 : IP_VS_SVC_F_SCHED_MH_PORT;
  const fallback = options.includes('mh-fallback') ? IP_VS_SVC_F_SCHED_MH_FALLBACK : 0;
  return { scheduler, flags: port | fallback };
}
