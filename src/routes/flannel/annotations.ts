import { formatIp, formatMac, type IpAddress, type IpFamily, parseJson, tryParseIp } from '../../core/index.ts';
import { FLANNEL_ANNOTATIONS } from '../../kube/index.ts';
import { tryParseMac } from '../plan/mac.ts';

// flannel's nodes tell each other by annotations of their Node objects where they are (pkg/subnet/kube of flannel 0.28). What
// is written here is what flannel writes, to the byte: flannel finds its own MAC address by splitting the text, not by reading
// the JSON.

/** What a node of flannel, backend vxlan, says about itself in one family. */
export interface FlannelVtep {
  readonly vni: number;
  readonly mac: Uint8Array;
  /** Where it takes VXLAN packets. */
  readonly publicIp: IpAddress;
}

/** Longer text is nobody's annotation of a MAC address. */
const LONGEST_DATA = 1000;

/**
 * What the annotations of a Node say about one family.
 *
 * @returns undefined: it is no node of flannel with backend vxlan, or has nothing in this family; `problem`: it is one, but what
 *   it says cannot be read
 */
export function readFlannelVtep(
  annotations: Readonly<Record<string, string>>,
  family: IpFamily,
): FlannelVtep | { readonly problem: string } | undefined {
  const { managed, backendType } = FLANNEL_ANNOTATIONS;
  if (annotations[managed] !== 'true' || annotations[backendType] !== 'vxlan') return undefined;
  const { data: dataName, ip: ipName } = namesOf(family);
  const [dataText, ipText] = [annotations[dataName], annotations[ipName]];
  if (dataText === undefined || ipText === undefined) return undefined;
  const place = readPublicIp(ipName, ipText, family);
  if ('problem' in place) return place;
  const data = readBackendData(dataText);
  return data
    ? { ...data, publicIp: place.publicIp }
    : { problem: `its annotation ${dataName} "${cut(dataText)}" names no VNI and MAC` };
}

/**
 * Where a node of flannel with backend host-gw says it is, in one family; it need not be its InternalIP (`--iface`,
 * `--public-ip`).
 *
 * @returns undefined: it is none, or has nothing in this family; `problem`: what it says cannot be read
 */
export function readFlannelGateway(
  annotations: Readonly<Record<string, string>>,
  family: IpFamily,
): { readonly publicIp: IpAddress } | { readonly problem: string } | undefined {
  const { managed, backendType } = FLANNEL_ANNOTATIONS;
  const { ip: name } = namesOf(family);
  const text = annotations[name];
  if (text === undefined || annotations[managed] !== 'true' || annotations[backendType] !== 'host-gw') return undefined;
  return readPublicIp(name, text, family);
}

function readPublicIp(
  name: string,
  text: string,
  family: IpFamily,
): { readonly publicIp: IpAddress } | { readonly problem: string } {
  const publicIp = tryParseIp(text);
  return publicIp?.family === family
    ? { publicIp }
    : { problem: `its annotation ${name} "${cut(text)}" is no ${family} address` };
}

/** `{"VNI":1,"VtepMAC":"12:c6:65:89:b4:e3"}`; Go ignores the order, and other keys. */
function readBackendData(text: string): { readonly vni: number; readonly mac: Uint8Array } | undefined {
  if (text.length > LONGEST_DATA) return undefined;
  let value: unknown;
  try {
    value = parseJson(text);
  } catch {
    return undefined;
  }
  const { VNI: vni, VtepMAC: macText } = (value ?? {}) as { readonly VNI?: unknown; readonly VtepMAC?: unknown };
  const mac = typeof macText === 'string' ? tryParseMac(macText) : undefined;
  return mac && typeof vni === 'number' && Number.isInteger(vni) && vni >= 0 && vni < 2 ** 24
    ? { vni, mac }
    : undefined;
}

/** What this node does in one family. */
export type FlannelRoutes =
  /** Its pods are reached at this address, without a tunnel. */
  { readonly backend: 'host-gw'; readonly publicIp: IpAddress } | ({ readonly backend: 'vxlan' } & FlannelVtep);

/**
 * The annotations by which nodes of flannel find this one. They have to be written in one patch: a dual-stack flannel passes
 * over a node that has those of one family alone.
 *
 * @param families one or two of different families and the same backend
 */
export function flannelAnnotations(families: readonly FlannelRoutes[]): Readonly<Record<string, string>> {
  const annotations: Record<string, string> = {};
  for (const routes of families) {
    const { data, ip } = namesOf(routes.publicIp.family);
    annotations[data] = backendData(routes);
    annotations[ip] = formatIp(routes.publicIp);
    annotations[FLANNEL_ANNOTATIONS.backendType] = routes.backend;
    annotations[FLANNEL_ANNOTATIONS.managed] = 'true';
  }
  return annotations;
}

function backendData(routes: FlannelRoutes): string {
  return routes.backend === 'vxlan' ? `{"VNI":${routes.vni},"VtepMAC":"${formatMac(routes.mac)}"}` : 'null';
}

function namesOf(family: IpFamily): { readonly data: string; readonly ip: string } {
  const { backendData: data, backendV6Data, publicIp: ip, publicIpv6 } = FLANNEL_ANNOTATIONS;
  return family === 'IPv4' ? { data, ip } : { data: backendV6Data, ip: publicIpv6 };
}

function cut(text: string): string {
  return text.length > 60 ? `${text.slice(0, 60)}…` : text;
}
