import type { ApiObject, FakeApiServer } from '../../fakes/api-server/index.ts';
import type { LabNode } from '../lab.ts';
import { ip } from '../wire.ts';

// What flanneld 0.28 does in a node's kernel and to its Node object, by hand: Debian has no package of it. Sources:
// pkg/backend/vxlan/{vxlan,device,vxlan_network}.go, pkg/backend/route_network.go, pkg/subnet/kube/kube.go.

const PREFIX = 'flannel.alpha.coreos.com';
const FAMILIES = ['IPv4', 'IPv6'] as const;
type Family = (typeof FAMILIES)[number];

const DEVICES = { IPv4: 'flannel.1', IPv6: 'flannel-v6.1' };
const DATA = { IPv4: 'backend-data', IPv6: 'backend-v6-data' };
const PUBLIC_IP = { IPv4: 'public-ip', IPv6: 'public-ipv6' };

/** flanneld in one node, dual stack, backend vxlan or host-gw. */
export class Flanneld {
  readonly #api: FakeApiServer;
  readonly #node: LabNode;
  readonly #backend: 'vxlan' | 'host-gw';

  constructor(api: FakeApiServer, node: LabNode, backend: 'vxlan' | 'host-gw') {
    this.#api = api;
    this.#node = node;
    this.#backend = backend;
  }

  /** As at its start: the device with the MAC address that the own Node names, the annotations, then everybody else. */
  start(): void {
    const said: Record<string, string> = { 'kube-subnet-manager': 'true', 'backend-type': this.#backend };
    for (const family of FAMILIES) {
      said[PUBLIC_IP[family]] = this.#node.ip(family);
      said[DATA[family]] = this.#backend === 'vxlan' ? `{"VNI":1,"VtepMAC":"${this.#makeDevice(family)}"}` : 'null';
    }
    const own = this.#object(this.#node.name);
    const annotations = { ...own.metadata.annotations };
    for (const [name, text] of Object.entries(said)) annotations[`${PREFIX}/${name}`] = text;
    this.#api.apply({ ...own, metadata: { ...own.metadata, annotations } });
    this.hear();
  }

  /** What its watch leads to: all that the Nodes of its backend say is in the kernel. */
  hear(): void {
    for (const { metadata, spec } of this.#api.objects('Node')) {
      const said = (name: string) => metadata.annotations?.[`${PREFIX}/${name}`] ?? '';
      const isOther = metadata.name !== this.#node.name;
      if (!isOther || said('kube-subnet-manager') !== 'true' || said('backend-type') !== this.#backend) continue;
      // Dual stack is all or nothing.
      if (FAMILIES.some((family) => said(PUBLIC_IP[family]) === '' || said(DATA[family]) === '')) continue;
      for (const family of FAMILIES) {
        const subnet = (spec as { podCIDRs: string[] }).podCIDRs.find(
          (cidr) => cidr.includes(':') === (family === 'IPv6'),
        )!;
        this.#add(family, subnet, said(PUBLIC_IP[family]), said(DATA[family]));
      }
    }
  }

  #add(family: Family, subnet: string, publicIp: string, data: string): void {
    const device = DEVICES[family];
    if (this.#backend === 'host-gw') {
      ip(this.#node.namespace, [`route replace ${subnet} via ${publicIp} dev eth0 proto boot`]);
      return;
    }
    const { VNI: vni, VtepMAC: mac } = JSON.parse(data);
    if (vni !== 1) throw new Error(`A flannel of another VNI: ${data}`);
    const base = subnet.replace(/\/\d+$/, '');
    ip(this.#node.namespace, [`neighbour replace ${base} lladdr ${mac} dev ${device} nud permanent`]);
    this.#node.namespace.run('bridge', 'fdb', 'replace', mac, 'dev', device, 'dst', publicIp, 'self', 'permanent');
    ip(this.#node.namespace, [`route replace ${subnet} via ${base} dev ${device} onlink proto boot`]);
  }

  /** Returns its MAC address. */
  #makeDevice(family: Family): string {
    const device = DEVICES[family];
    const subnet = this.#node.podCidrs.find((cidr) => cidr.includes(':') === (family === 'IPv6'))!;
    const mac =
      this.#ownMac(family) ??
      `${family === 'IPv4' ? '4a' : '6a'}:00:00:00:00:${this.#node.name.slice(-1).padStart(2, '0')}`;
    const base = subnet.replace(/\/\d+$/, '');
    ip(this.#node.namespace, [
      `link add ${device} address ${mac} type vxlan id 1 dev eth0 local ${this.#node.ip(family)} dstport 8472 nolearning`,
      `address add ${base}/${family === 'IPv4' ? 32 : 128} dev ${device}${family === 'IPv6' ? ' nodad' : ''}`,
      `link set ${device} up`,
    ]);
    return mac;
  }

  /** It does not read the JSON, but cuts the text. */
  #ownMac(family: Family): string | undefined {
    const text = this.#object(this.#node.name).metadata.annotations?.[`${PREFIX}/${DATA[family]}`];
    const parts = text?.replace(/^["}]+|["}]+$/g, '').split('":"') ?? [];
    return parts.length === 2 ? parts[1] : undefined;
  }

  #object(name: string): ApiObject {
    return this.#api.objects('Node').find(({ metadata }) => metadata.name === name)!;
  }
}
