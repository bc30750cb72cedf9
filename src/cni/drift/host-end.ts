import { addressBits, formatCidr, formatIp, formatMac, sameBytes } from '../../core/index.ts';
import {
  type BridgePort,
  type Link,
  newAddress,
  newNeighbour,
  newRoute,
  setBridgePort,
  setLink,
} from '../../netlink/route/index.ts';
import { IF_OPER_UP } from '../../netlink/uapi/index.ts';
import { missingVlans } from '../bridge/port-vlans.ts';
import { filtersVlans } from '../config/bridge-config.ts';
import { hostMac, setPortVlans } from '../link/host-link.ts';
import { HOST_GATEWAY } from '../routed/routed-addressing.ts';
import { leadsFromLoopback } from './bridge-drift.ts';
import type { Difference, Mend } from './finding.ts';
import type { KernelLinks } from './kernel-links.ts';
import { forwardedFamilies, linkForwarding, settingDifferences } from './settings.ts';
import type { WantedLink } from './wanted-link.ts';

/** In what the host's end of a pod's veth pair differs from what its ADD made; of a routed pod, `wayDifferences` besides. */
export function hostEndDifferences(kernel: KernelLinks, pod: WantedLink, link: Link): Difference[] {
  const { key, made, mode } = pod;
  const { index } = link;
  return [
    ...(link.name === key.hostName
      ? []
      : [{ theirs: `name ${link.name}`, ours: `name ${key.hostName}`, mend: rename(link, key.hostName) }]),
    ...(link.alias === key.alias
      ? []
      : [
          {
            theirs: link.alias ? `alias ${link.alias}` : 'no alias',
            ours: `alias ${key.alias}`,
            mend: by(setLink(index, { alias: key.alias })),
          },
        ]),
    ...(link.up ? [] : [{ theirs: 'down', ours: 'up', mend: by(setLink(index, { up: true })) }]),
    ...(made && link.mtu !== made.mtu
      ? [{ theirs: `mtu ${link.mtu}`, ours: `mtu ${made.mtu}`, mend: by(setLink(index, { mtu: made.mtu })) }]
      : []),
    ...(mode === 'bridge' ? portDifferences(kernel, pod, link) : macDifferences(pod, link)),
  ];
}

function portDifferences(kernel: KernelLinks, { bridge }: WantedLink, link: Link): Difference[] {
  const master = kernel.named(bridge.name);
  // Told of the bridge.
  if (master?.kind !== 'bridge') return [];
  const { index } = link;
  if (link.master !== master.index || !link.bridgePort) {
    return [
      {
        theirs: 'no port of the bridge',
        ours: `master ${bridge.name}`,
        mend: by(setLink(index, { master: master.index })),
      },
    ];
  }
  return [
    ...flagDifferences(link, link.bridgePort, { hairpin: bridge.hairpinMode, isolated: bridge.portIsolation }),
    ...(filtersVlans(bridge) ? vlanDifferences(kernel, bridge, link) : []),
  ];
}

type PortFlag = Exclude<keyof BridgePort, 'forwarding' | 'settling'>;

/** As `ip link set type bridge_slave` calls them. */
const FLAG_NAMES: Readonly<Record<PortFlag, string>> = {
  hairpin: 'hairpin',
  isolated: 'isolated',
  learning: 'learning',
  unicastFlood: 'flood',
  multicastFlood: 'mcast_flood',
  broadcastFlood: 'bcast_flood',
  proxyArp: 'proxy_arp',
  neighbourSuppress: 'neigh_suppress',
  locked: 'locked',
};

/** What the kernel gives a new port: ADD leaves these as they are. */
const NEW_PORT = {
  learning: true,
  unicastFlood: true,
  multicastFlood: true,
  broadcastFlood: true,
  proxyArp: false,
  neighbourSuppress: false,
  locked: false,
};

function flagDifferences(link: Link, port: BridgePort, asked: Pick<BridgePort, 'hairpin' | 'isolated'>): Difference[] {
  const wanted: Readonly<Record<PortFlag, boolean>> = { ...asked, ...NEW_PORT };
  const flags = Object.keys(wanted) as PortFlag[];
  const onOff = (isOn: boolean) => (isOn ? 'on' : 'off');
  const differences = flags
    .filter((flag) => port[flag] !== wanted[flag])
    .map(
      (flag): Difference => ({
        theirs: `${FLAG_NAMES[flag]} ${onOff(port[flag])}`,
        ours: `${FLAG_NAMES[flag]} ${onOff(wanted[flag])}`,
        mend: by(setBridgePort(link.index, { [flag]: wanted[flag] })),
      }),
    );
  // A port without carrier does not forward, and one that comes up does.
  if (link.up && link.operState === IF_OPER_UP && !port.forwarding) {
    differences.push({
      theirs: 'not forwarding',
      ours: 'state forwarding',
      mend: by(setBridgePort(link.index, { forwarding: true })),
    });
  }
  return differences;
}

function vlanDifferences(kernel: KernelLinks, bridge: WantedLink['bridge'], { index }: Link): Difference[] {
  const { own, spans } = missingVlans(kernel.vlansOf(index), bridge);
  const mend: Mend = (host) => setPortVlans(host, { index }, bridge);
  return [
    ...(own ? [{ ours: `vlan ${bridge.vlan} pvid untagged`, mend }] : []),
    ...spans.map(({ first, last }) => ({ ours: `vlan ${first}-${last}`, mend })),
  ];
}

function macDifferences({ key }: WantedLink, { index, address }: Link): Difference[] {
  // The pod has it entered for good.
  const ownMac = hostMac(key);
  if (sameBytes(address, ownMac)) return [];
  return [
    {
      theirs: `address ${formatMac(address)}`,
      ours: `address ${formatMac(ownMac)}`,
      mend: by(setLink(index, { mac: ownMac })),
    },
  ];
}

/** In what the way to a routed pod and back differs: its routes, neighbour entries, the gateway's address and settings of the link. */
export function wayDifferences(kernel: KernelLinks, pod: WantedLink, link: Link): Difference[] {
  if (pod.mode !== 'routed') return [];
  const { ips, mac } = pod;
  const { index, name } = link;
  const families = forwardedFamilies(pod);
  return [
    ...(families.includes('IPv6') && !kernel.hasAddress(index, HOST_GATEWAY)
      ? [
          {
            ours: `address ${formatCidr(HOST_GATEWAY)}`,
            mend: by(newAddress({ index, ...HOST_GATEWAY, replace: true })),
          },
        ]
      : []),
    ...ips.flatMap(({ address: { address } }): Difference[] => {
      const destination = { address, prefixLength: addressBits(address.family) };
      const neighbour = kernel.permanentNeighbour(index, address);
      return [
        ...(kernel.hasRoute(destination, index)
          ? []
          : [
              {
                ours: `route ${formatIp(address)} dev ${name}`,
                mend: by(newRoute({ destination, outInterface: index, replace: true })),
              },
            ]),
        ...(sameBytes(neighbour, mac)
          ? []
          : [
              {
                theirs: neighbour && `neighbour ${formatIp(address)} lladdr ${formatMac(neighbour)}`,
                ours: `neighbour ${formatIp(address)} lladdr ${formatMac(mac)} permanent`,
                mend: by(newNeighbour({ index, ip: address, lladdr: mac, replace: true })),
              },
            ]),
      ];
    }),
    ...settingDifferences({
      ...linkForwarding(name, families),
      ...(families.includes('IPv4') && {
        [`net/ipv4/conf/${name}/proxy_arp`]: 1,
        [`net/ipv4/neigh/${name}/proxy_delay`]: 0,
      }),
      ...(families.includes('IPv6') && {
        [`net/ipv6/conf/${name}/proxy_ndp`]: 1,
        [`net/ipv6/conf/${name}/accept_ra`]: 0,
      }),
      ...(leadsFromLoopback(pod) && { [`net/ipv4/conf/${name}/route_localnet`]: 1 }),
    }),
  ];
}

/** Kernels before 6.2 rename only links that are down; that it is down is mended next. */
function rename({ index }: Link, name: string): Mend {
  return (host) => host.execute(setLink(index, { up: false }), setLink(index, { name }));
}

function by(request: ReturnType<typeof setLink>): Mend {
  return (host) => host.execute(request);
}
