import { readFileSync } from 'node:fs';
import {
  errorText,
  formatIp,
  formatIpPort,
  ifPresent,
  ipFromBytes,
  readBe16,
  withPort,
} from '../../../../core/index.ts';
import { listIpvsConnections } from '../../../../netlink/ipvs/index.ts';
import { Nftables, type NftElement, nftFamily, type SetRef } from '../../../../netlink/nftables/index.ts';
import { endpointChainName } from '../../../../proxy/iptables/index.ts';
import { stickyNames, TABLE_NAME } from '../../../../proxy/nftables/index.ts';
import { needCapability, readRecentList } from '../../../../sys/index.ts';
import type { PortReport } from '../../status.ts';
import type { AffinityClient } from './client.ts';
import { clientsAmong } from './ipvs-templates.ts';
import { kernelTicks, recentClients } from './recent-clients.ts';

/** The clients that a Service port remembers (session affinity). */
export interface PortAffinity {
  readonly total: number;
  /** As many as a limit allows, those that are remembered longest first. */
  readonly clients: readonly AffinityClient[];
}

/** A port remembers up to 262,144. */
const MOST_CLIENTS = 20;

/**
 * The clients that the ports of a Service remember, as the kernel has them: the elements of maps in mode nftables, the lists of
 * match `recent` in mode iptables, the templates of persistence in mode ipvs. Needs root.
 *
 * @param mode --proxy-mode in force
 * @returns for each port, null without affinity; or in words why it is not known
 */
export function affinityOf(
  mode: string,
  serviceName: string,
  ports: readonly PortReport[],
): readonly (PortAffinity | null)[] | string {
  const readerOf = READERS[mode];
  if (!readerOf) return `mode ${mode} is not known to this program`;
  try {
    if (ports.every(({ affinitySeconds }) => affinitySeconds === 0)) return ports.map(() => null);
    needCapability('NET_ADMIN', 'read who is remembered');
    const read = readerOf(serviceName);
    return ports.map((port) => (port.affinitySeconds === 0 ? null : affinityIn(read(port))));
  } catch (error) {
    return errorText(error);
  }
}

function affinityIn(clients: readonly AffinityClient[]): PortAffinity {
  const longest = [...clients].sort((a, b) => (b.remainingSeconds ?? 0) - (a.remainingSeconds ?? 0));
  return { total: clients.length, clients: longest.slice(0, MOST_CLIENTS) };
}

/** What is the same for all ports is read once. */
type ReaderOf = (serviceName: string) => (port: PortReport) => AffinityClient[];

const READERS: Readonly<Record<string, ReaderOf>> = {
  nftables: (serviceName) => (port) => readMaps(serviceName, port),
  iptables: readerOfRecentLists,
  ipvs: readerOfTemplates,
};

function readMaps(serviceName: string, port: PortReport): AffinityClient[] {
  const { cluster, local } = stickyNames({ serviceName, name: nameOf(serviceName, port), protocol: protocolOf(port) });
  const family = nftFamily(port.family);
  const nft = Nftables.open();
  try {
    return [cluster, local].flatMap(({ affinity: name }) => {
      return elementsOf(nft, { kind: 'set', family, table: TABLE_NAME, name }).flatMap(
        ({ key, data, expirationMs }) => {
          if (!data) return [];
          const length = port.family === 'IPv4' ? 4 : 16;
          const endpoint = formatIpPort(ipFromBytes(data.subarray(0, length)), readBe16(data, length));
          const remainingSeconds = expirationMs === undefined ? null : Math.round(expirationMs / 1000);
          return { client: formatIp(ipFromBytes(key.subarray(0, length))), endpoint, remainingSeconds };
        },
      );
    });
  } finally {
    nft.close();
  }
}

/** Of a map that is there only with the policy that needs it. */
function elementsOf(nft: Nftables, set: SetRef): NftElement[] {
  return ifPresent(() => nft.listElements(set)) ?? [];
}

function readerOfRecentLists(serviceName: string): (port: PortReport) => AffinityClient[] {
  const ticks = kernelTicks(ifPresent(() => readFileSync('/proc/timer_list', 'utf8')) ?? '', readUptime());
  return (port) =>
    port.endpoints.flatMap(({ address, port: number }) => {
      const endpoint = withPort(address, number);
      const list = endpointChainName(nameOf(serviceName, port), port.protocol.toLowerCase(), endpoint);
      // Without a list nobody has come yet.
      const clients = recentClients(readRecentList(list) ?? [], port.affinitySeconds, ticks);
      return clients.map((one) => ({ ...one, endpoint }));
    });
}

function readerOfTemplates(): (port: PortReport) => AffinityClient[] {
  const templates = listIpvsConnections(({ clientPort }) => clientPort === 0);
  return (port) => clientsAmong(templates, port);
}

function readUptime(): number {
  return Number(readFileSync('/proc/uptime', 'utf8').split(' ')[0]);
}

/** As in the plan: `shop/web:http`, or `shop/web` for an unnamed port. */
function nameOf(serviceName: string, { portName }: PortReport): string {
  return portName === '' ? serviceName : `${serviceName}:${portName}`;
}

function protocolOf({ protocol }: PortReport): 'TCP' | 'UDP' | 'SCTP' {
  return protocol as 'TCP' | 'UDP' | 'SCTP';
}
