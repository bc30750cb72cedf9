import { type Cidr, IP_FAMILIES, type IpAddress, type IpFamily } from '../../../core/index.ts';
import { LOOPBACK } from '../../../nft/index.ts';
import type { PortMapping } from '../../config/feature-config.ts';
import { CNI_ERROR, CniError } from '../../protocol/errors.ts';
import { invalidConfig } from '../../protocol/json.ts';
import type { WantedAttachment } from '../wanted-attachment.ts';

/** A port of the node that leads to a port of the pod, in one family. */
export interface MappedPort {
  readonly family: IpFamily;
  readonly protocol: PortMapping['protocol'];
  /** Undefined: every address of the family. */
  readonly hostIp: IpAddress | undefined;
  readonly hostPort: number;
  readonly containerPort: number;
  /** The pod's address with its subnet. */
  readonly pod: Cidr;
}

/**
 * The mappings of an attachment, family by family: those without host address are for both. They lead to the pod's first
 * address of the family, and a family it has none of is left out, as by the reference portmap plugin.
 *
 * @throws CniError 7 when a port is mapped twice, 2 for what cannot be done
 */
export function mappedPorts({ features, ips }: Pick<WantedAttachment, 'features' | 'ips'>): MappedPort[] {
  const ports = new Map<string, MappedPort>();
  for (const mapping of features.portMappings?.mappings ?? []) {
    const { protocol, hostPort, containerPort } = mapping;
    for (const family of mapping.hostIp ? [mapping.hostIp.family] : IP_FAMILIES) {
      const pod = ips.find(({ address }) => address.address.family === family)?.address;
      if (!pod) continue;
      const hostIp = mapping.hostIp?.bytes.some((byte) => byte !== 0) ? mapping.hostIp : undefined;
      if (hostIp) refuseLoopback6(hostIp);
      const id = [family, hostIp?.bytes.join('.'), protocol, hostPort].join();
      const other = ports.get(id)?.containerPort ?? containerPort;
      if (other !== containerPort) {
        const port = `${hostPort}/${protocol}`;
        throw invalidConfig(`Cannot map host port ${port} to container port ${containerPort}: it leads to ${other}`);
      }
      ports.set(id, { family, protocol, hostIp, hostPort, containerPort, pod });
    }
  }
  return [...ports.values()];
}

/** The kernel lets packets from 127.0.0.0/8 leave the node when told to (route_localnet), but never those from ::1. */
function refuseLoopback6({ family, bytes }: IpAddress): void {
  const isLoopback = family === 'IPv6' && bytes.every((byte, i) => byte === LOOPBACK.IPv6.address.bytes[i]);
  if (!isLoopback) return;
  throw new CniError(
    CNI_ERROR.UNSUPPORTED_FIELD,
    'Key "hostIP" has the unsupported value "::1": the kernel has no way from there to a pod, use 127.0.0.1',
  );
}
