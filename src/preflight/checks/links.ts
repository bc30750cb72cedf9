import { configurationsInFront } from '../../cni/index.ts';
import type { RoutesConfig } from '../../config/index.ts';
import { cidrContains, errorText, formatCidr, type IpFamily } from '../../core/index.ts';
import { internalIpOf } from '../../kube/index.ts';
import type { Link } from '../../netlink/route/index.ts';
import { IPVS_DEVICE } from '../../proxy/ipvs/index.ts';
import { type Attachment, isOurDevice, TUNNEL_NAMES, tunnelKind, tunnelMtu, wireguardMtu } from '../../routes/index.ts';
import type { Check, World } from '../check.ts';
import { nodeObject, podRanges } from '../facts/node-object.ts';
import { presentProxies } from '../facts/present-proxy.ts';
import { fails, firstFew, type Outcome, ok, skipped, unknown, warning } from '../finding.ts';
import { routes } from './routes.ts';

const vxlan: Check = {
  name: 'links.vxlan',
  look({ config: { routes }, node }) {
    if (!routes || tunnelKind(routes) !== 'vxlan') return skipped('VXLAN: no --routes that uses it');
    const { vni, port } = routes;
    const foreign = node.links().filter((link) => link.vxlan && !isOurDevice(link));
    const atPort = foreign.filter((link) => link.vxlan?.port === port);
    // The kernel takes both, and refuses to set the second one up (drivers/net/vxlan: EADDRINUSE).
    const metadata = atPort.find((link) => link.vxlan?.metadata);
    if (metadata)
      return fails(
        `"${metadata.name}" takes all of UDP port ${port} (external mode, as Cilium's): a device of ours there cannot be set up`,
        `ip link delete ${metadata.name}, or another --routes-port on all nodes`,
      );
    const same = atPort.find((link) => link.vxlan?.vni === vni);
    if (same)
      return fails(
        `"${same.name}" has network ${vni} at port ${port} already, and two devices cannot`,
        `take it over as docs/migration.md says (ip link delete ${same.name}), or choose another --routes-vni on all nodes`,
      );
    return ok(`network ${vni} at port ${port} is free`);
  },
};

/** Links that others leave behind, and what they are in the way of. */
const LEFTOVERS: readonly { link: RegExp; what: string }[] = [
  { link: /^flannel(?:-v6)?\.\d+$/, what: 'flannel’s tunnel' },
  { link: /^(?:cni0|cbr0)$/, what: 'the bridge of flannel or of the bridge plugin, with pods if it has ports' },
  { link: /^cilium_/, what: 'Cilium’s' },
  { link: /^(?:vxlan|vxlan-v6)\.calico$|^tunl0$/, what: 'Calico’s tunnel' },
  { link: /^kube-(?:bridge|dummy-if)$/, what: 'kube-router’s' },
];

/** Of the configuration that the agent installs itself. */
const OUR_BRIDGE = 'cni0';

const leftovers: Check = {
  name: 'links.leftovers',
  async look({ node, config }) {
    const links = node.links();
    const found = links.flatMap((link) => {
      const known = LEFTOVERS.find((one) => one.link.test(link.name));
      // Of every namespace with ip_tunnel; Calico's is up.
      if (!known || (link.name === 'tunl0' && !link.up)) return [];
      // The agent's own, or used on by it: `links.bridge` looks whether its addresses fit.
      if (link.name === OUR_BRIDGE && config.cni?.conflist === '') return [];
      const ports = links.filter(({ master }) => master === link.index).length;
      return [`${link.name} (${known.what}${ports > 0 ? `, ${ports} ports` : ''})`];
    });
    const hasIpvs = links.some(({ name }) => name === IPVS_DEVICE);
    const isIpvsUsed = config.mode === 'ipvs' || (await presentProxies(node)).some(({ mode }) => mode === 'ipvs');
    if (hasIpvs && !isIpvsUsed)
      found.push(`${IPVS_DEVICE} (addresses of Services of a proxy in mode ipvs that is gone)`);
    if (found.length === 0) return ok('no device of another network is left');
    return warning(
      `devices of others are here: ${firstFew(found)}`,
      'when nothing uses them any more: ip link delete <name>; nodeplane uses cni0 on where it has the addresses it needs',
    );
  },
};

const bridge: Check = {
  name: 'links.bridge',
  async look(world) {
    const { config, node } = world;
    if (config.cni?.conflist !== '') return skipped('the bridge of pods: no --cni, or --cni-conflist');
    const link = node.links().find(({ name }) => name === OUR_BRIDGE);
    if (!link) return ok(`${OUR_BRIDGE} is not there yet; the first pod makes it`);
    const { own, all } = await podRanges(world);
    const ranges = config.pools ? all : own;
    // Of IPv6 several addresses may be there.
    const foreign = node
      .addresses()
      .filter(({ index, address }) => index === link.index && address.family === 'IPv4')
      .filter(({ address }) => !ranges.some((range) => cidrContains(range, address)));
    if (foreign.length === 0 || ranges.length === 0) return ok(`${OUR_BRIDGE} has no address of another network`);
    return warning(
      `${OUR_BRIDGE} has the address ${firstFew(foreign.map(formatCidr))}, which is not of this node’s pods: none can be made`,
      `when the pods of its network are gone: ip link delete ${OUR_BRIDGE}`,
    );
  },
};

const mtu: Check = {
  name: 'links.mtu',
  async look(world) {
    const { config, node } = world;
    const object = await nodeObject(world);
    const families = node.whyNoIpv6() === undefined ? (['IPv4', 'IPv6'] as const) : (['IPv4'] as const);
    const underlays = families.flatMap((family) => {
      const address = config.nodeIp?.family === family ? config.nodeIp : internalIpOf(object, family);
      return node.underlay(family, { address, interfaceName: config.routes?.interfaceName }) ?? [];
    });
    if (underlays.length === 0)
      return unknown('no interface has the node’s address', 'name the interface: --routes-interface');
    const said = underlays.map(({ name, mtu: bytes, address }) => `${address.family}: ${name} ${bytes}`);
    const most = Math.min(...underlays.map((underlay) => carried(world, underlay)));
    const tooLarge = node.links().filter((link) => carriesPods(link) && link.mtu > most);
    if (tooLarge.length > 0) {
      const names = tooLarge.map((link) => `${link.name} ${link.mtu}`);
      return warning(
        `${firstFew(names)}: larger than the ${most} bytes that reach other nodes (${said.join(', ')})`,
        smallerMtu(tooLarge[0]!, most, config),
      );
    }
    return ok(`${said.join(', ')}; packets of pods may have ${most} bytes`);
  },
};

/** The agent with --cni keeps the bridge at the least MTU of its pods, whatever somebody sets. */
function smallerMtu({ kind, name }: Link, most: number, { cni, routes }: World['config']): string {
  if (kind !== 'bridge' || !cni) return `ip link set ${name} mtu ${most}; pods that run keep theirs`;
  const makeAnew = `pods that run keep theirs: make them anew (kubectl drain), and ${name} follows`;
  return routes
    ? `new pods get what the agent finds for them; ${makeAnew}`
    : `give new pods ${most}, by "mtu" in a --cni-conflist; ${makeAnew}`;
}

/** @throws ERR_ROUTES when the underlay cannot carry a tunnel, which `look` tells as what it is */
function carried({ config: { routes } }: World, underlay: Attachment): number {
  return routes && tunnelKind(routes) !== undefined ? fitting(routes, underlay, routes.mtu) : underlay.mtu;
}

/**
 * The largest packet through the tunnel over one underlay.
 *
 * @throws ERR_ROUTES when it can carry none
 */
function fitting(routes: Pick<RoutesConfig, 'mode' | 'tunnel'>, underlay: Attachment, wanted?: number): number {
  if (tunnelKind(routes) === 'vxlan') return tunnelMtu({ mtu: wanted }, underlay);
  const { family } = underlay.address;
  return wireguardMtu(new Map([[family, underlay]]), family, wanted);
}

/** The agent keeps the MTU of its own tunnels, each by the family it is of. */
function carriesPods(link: Link): boolean {
  const { kind, name } = link;
  const isTunnel = Object.values(TUNNEL_NAMES).includes(name) && !isOurDevice(link);
  return (kind === 'bridge' && /^(?:cni|cbr|kube-bridge)/.test(name)) || isTunnel;
}

const tunnel: Check = {
  name: 'links.tunnel-mtu',
  async look(world) {
    const { routes } = world.config;
    if (!routes || routes.mode === 'host-gw') return skipped('the tunnel’s MTU: no --routes that uses one');
    const { own } = await podRanges(world);
    const hasIpv6 = own.some(({ address }) => address.family === 'IPv6') && world.node.whyNoIpv6() === undefined;
    const ofIpv4 = tunnelOf(world, routes, 'IPv4');
    // That of WireGuard is one device for both.
    if (!hasIpv6 || tunnelKind(routes) !== 'vxlan' || ofIpv4.state === 'fails') return ofIpv4;
    const ofIpv6 = tunnelOf(world, routes, 'IPv6');
    return ofIpv6.state === 'ok' || ofIpv4.state !== 'ok' ? ofIpv4 : ofIpv6;
  },
};

function tunnelOf({ config: { nodeIp }, node }: World, routes: RoutesConfig, family: IpFamily): Outcome {
  const underlay = node.underlay(family, {
    address: nodeIp?.family === family ? nodeIp : undefined,
    interfaceName: routes.interfaceName,
  });
  if (!underlay)
    return unknown(`no interface has an ${family} address of the node`, 'name the interface: --routes-interface');
  try {
    const fits = fitting(routes, underlay);
    if (routes.mtu !== undefined && routes.mtu > fits)
      return warning(
        `--routes-mtu ${routes.mtu} does not fit into ${underlay.name} (${underlay.mtu}): ${fits} is used`,
        `--routes-mtu ${fits} or less, or raise the MTU of ${underlay.name}`,
      );
    const said = `the tunnel carries ${routes.mtu ?? fits} of ${underlay.mtu} bytes`;
    return ok(tunnelKind(routes) === 'vxlan' ? said : `${said}, 20 less where pods have IPv6 too`);
  } catch (error) {
    return fails(errorText(error), `raise the MTU of ${underlay.name}`);
  }
}

const conflists: Check = {
  name: 'cni.conflists',
  look({ config: { cni }, node, conflistFile, pluginType }) {
    if (!cni) return skipped('CNI configurations: no --cni');
    const files = node.files(cni.confDir);
    if (files === undefined) return ok(`${cni.confDir} is not there yet; the agent makes it`);
    const read = (name: string) => node.text(`${cni.confDir}/${name}`);
    const before = configurationsInFront(files, { ours: conflistFile, type: pluginType, read });
    if (before.length === 0) return ok(`no configuration in ${cni.confDir} sorts before ${conflistFile}`);
    return fails(
      `the container runtime takes ${cni.confDir}/${before[0]} and not ${conflistFile}, which sorts after it`,
      `rename or remove ${firstFew(before)}`,
    );
  },
};

export const LINK_CHECKS: readonly Check[] = [vxlan, leftovers, bridge, routes, mtu, tunnel, conflists];
