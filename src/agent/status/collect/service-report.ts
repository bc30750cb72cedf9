import { formatCidr, formatIp, type IpFamily, type Steps } from '../../../core/index.ts';
import { type EndpointReason, type ExplainedPort, isInUse } from '../../../proxy/index.ts';
import { type EndpointReport, type PortReport, type ServiceReport, STATUS_LIMITS } from '../status.ts';
import type { PlannedFamily } from './service-index.ts';

/** Says why endpoints are used or not, for one family. */
export interface ExplainingFamily extends PlannedFamily {
  explain(serviceName: string): Steps<readonly ExplainedPort[]>;
}

export interface ServiceReportOptions {
  readonly families: readonly ExplainingFamily[];
  /** RFC 3339; null: not since the start. */
  readonly lastChange: string | null;
  /** Most endpoints of a port. */
  readonly endpoints: number;
}

/** All that is told of one Service. */
export function* serviceReport(name: string, options: ServiceReportOptions): Steps<ServiceReport> {
  const ports: PortReport[] = [];
  const problems = new Set<string>();
  for (const { family, explain, record } of options.families) {
    for (const text of record?.problems.get(name) ?? []) problems.add(text);
    for (const explained of yield* explain(name)) {
      const leftOut = record?.leftOut.get(explained.port.key)?.reason ?? null;
      ports.push(portReport(family, explained, leftOut, options.endpoints));
      yield;
    }
  }
  return {
    name,
    lastChange: options.lastChange,
    problems: [...problems].slice(0, STATUS_LIMITS.textsOfService),
    ports,
  };
}

function portReport(family: IpFamily, explained: ExplainedPort, leftOut: string | null, most: number): PortReport {
  const { port, endpoints } = explained;
  const { nodePort, externalIps, loadBalancerVips, externalVerdict, serviceName, protocol, key } = port;
  const isExternal = nodePort !== 0 || externalIps.length > 0 || loadBalancerVips.length > 0;
  const reports = endpoints.map(({ endpoint, cluster, local }): EndpointReport => {
    const used = isInUse(cluster) || isInUse(local);
    const { ip, port: number, isLocal: here } = endpoint;
    return { address: formatIp(ip), port: number, here, used, cluster: asked(cluster), local: asked(local) };
  });
  return {
    family,
    portName: key.slice(serviceName.length + 1, -(protocol.length + 1)),
    protocol,
    clusterIp: formatIp(port.clusterIp),
    port: port.port,
    nodePort,
    externalIps: externalIps.map(formatIp),
    loadBalancerVips: loadBalancerVips.map(formatIp),
    sourceRanges: port.sourceRanges.map(formatCidr),
    internalPolicy: port.internalPolicy,
    externalPolicy: port.externalPolicy,
    internalVerdict: port.internalVerdict,
    externalVerdict: isExternal ? externalVerdict : null,
    affinitySeconds: port.affinitySeconds,
    leftOut,
    endpointsTotal: endpoints.length,
    endpointsUsed: reports.reduce((count, { used }) => count + Number(used), 0),
    // Sorting is stable: the order of addresses stays.
    endpoints: reports.sort((a, b) => Number(b.used) - Number(a.used)).slice(0, most),
  };
}

function asked(reason: EndpointReason): EndpointReason | null {
  return reason === 'policy-not-used' ? null : reason;
}
