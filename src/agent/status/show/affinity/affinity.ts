import { readFileSync } from 'node:fs';
import { errorText, formatIp, formatIpPort, ipFromBytes, isNotFound, readBe16 } from '../../../../core/index.ts';
import { Nftables, type NftElement, nftFamily, type SetRef } from '../../../../netlink/nftables/index.ts';
import { endpointChainName } from '../../../../proxy/iptables/index.ts';
import { stickyNames, TABLE_NAME } from '../../../../proxy/nftables/index.ts';
import { needCapability } from '../../../../sys/index.ts';
import type { PortReport } from '../../status.ts';
import type { AffinityClient } from './client.ts';
import { parseTemplates } from './ipvs-templates.ts';
import { kernelTicks, parseRecentList } from './recent-list.ts';

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
  const read = READERS[mode];
  if (!read) return `mode ${mode} is not known to this program`;
  try {
    if (ports.some(({ affinitySeconds }) => affinitySeconds > 0)) needCapability('NET_ADMIN', 'read who is remembered');
    return ports.map((port) => (port.affinitySeconds === 0 ? null : affinityIn(read(serviceName, port))));
  } catch (error) {
    return errorText(error);
  }
}

function affinityIn(clients: readonly AffinityClient[]): PortAffinity {
  const longest = [...clients].sort((a, b) => (b.remainingSeconds ?? 0) - (a.remainingSeconds ?? 0));
  return { total: clients.length, clients: longest.slice(0, MOST_CLIENTS) };
}

type Reader = (serviceName: string, port: PortReport) => AffinityClient[];

const READERS: Readonly<Record<string, Reader>> = {
  nftables: readMaps,
  iptables: readRecentLists,
  ipvs: readTemplates,
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
  try {
    return nft.listElements(set);
  } catch (error) {
    if (isNotFound(error)) return [];
    throw error;
  }
}

function readRecentLists(serviceName: string, port: PortReport): AffinityClient[] {
  const ticks = kernelTicks(textOf('/proc/timer_list'), readUptime());
  return port.endpoints.flatMap(({ address, port: number }) => {
    const endpoint = `${address.includes(':') ? `[${address}]` : address}:${number}`;
    const list = endpointChainName(nameOf(serviceName, port), port.protocol.toLowerCase(), endpoint);
    const text = textOf(`/proc/net/xt_recent/${list}`);
    return parseRecentList(text, port.affinitySeconds, ticks).map((one) => ({ ...one, endpoint }));
  });
}

function readTemplates(_serviceName: string, port: PortReport): AffinityClient[] {
  return parseTemplates(textOf('/proc/net/ip_vs_conn'), port);
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

/** The text of a file, empty where there is none: nobody has come yet. */
function textOf(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return '';
    throw error;
  }
}
