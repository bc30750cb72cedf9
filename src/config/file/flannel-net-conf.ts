import { errorText, formatCidr, NodeplaneError, parseJson, tryParseCidr } from '../../core/index.ts';
import type { ConfigProblem } from '../problems.ts';
import { isMapping } from '../values/list-types.ts';
import { valueAt, withValue } from './field-path.ts';
import type { Configuration, FieldPath } from './schema.ts';

/** What a net-conf.json leads to. */
export interface NetConfOptions {
  /** Whether somebody has said what a field is to be. */
  readonly isGiven: (path: FieldPath) => boolean;
  /** Throws the system's error if there is no such file. */
  readonly readFile: (path: string) => string;
}

/** What one field is to be by the file. */
interface Said {
  readonly path: FieldPath;
  readonly value: string | number;
  /** Whether what was given otherwise can stay. @default the same value alone */
  readonly agrees?: (given: string) => boolean;
  /** Where in the file. */
  readonly source: string;
}

/** flannel's, where the file says nothing; a port of 0 is the kernel's. */
const VXLAN = { vni: 1, port: 8472 };
/** flannel's MTU is that of the network between the nodes, ours that of the tunnel. */
const VXLAN_OVERHEAD = 50;

/**
 * Fills in what flannel's net-conf.json says, for the one who comes from there: the mode, the VXLAN network, its port and MTU,
 * and the addresses of the pods (https://github.com/flannel-io/flannel/blob/master/Documentation/configuration.md).
 *
 * @param configuration as it is without the file
 * @returns the configuration with it, and what in the file cannot be, or contradicts what was given otherwise
 * @throws ERR_CONFIG when the file cannot be read
 */
export function withNetConf(
  configuration: Configuration,
  { isGiven, readFile }: NetConfOptions,
): { readonly effective: Configuration; readonly problems: readonly ConfigProblem[] } {
  const { netConf: file } = configuration.nodeplane.routes.flannel;
  if (file === '') return { effective: configuration, problems: [] };
  const problems: ConfigProblem[] = [];
  let effective = configuration;
  try {
    for (const said of readNetConf(contentOf(file, readFile))) {
      const { path, value, source, agrees = (given) => given === String(value) } = said;
      const found = valueAt(configuration, path);
      if (!isGiven(path)) effective = withValue(effective, path, value as never);
      else if (!agrees(String(found))) {
        problems.push({
          path,
          message: `is ${JSON.stringify(found)}, but ${source} in "${file}" makes it ${JSON.stringify(value)}: leave it out, or correct one of them`,
        });
      }
    }
  } catch (error) {
    problems.push({
      path: 'nodeplane.routes.flannel.netConf',
      message: `"${file}" cannot be used: ${errorText(error)}`,
    });
  }
  return { effective, problems };
}

function contentOf(path: string, readFile: (path: string) => string): string {
  try {
    return readFile(path);
  } catch (cause) {
    throw new NodeplaneError('ERR_CONFIG', 'it cannot be read', { cause });
  }
}

/** @throws ERR_CONFIG when it is no net-conf.json, or one of a backend that nodeplane does not have */
function readNetConf(text: string): Said[] {
  const conf = parseJson(text);
  if (!isMapping(conf)) throw unusable('it holds no mapping');
  const backend = conf.Backend ?? {};
  if (!isMapping(backend)) throw unusable('"Backend" is no mapping');
  const networks = networksOf(conf);
  return [
    ...readBackend(backend),
    {
      path: 'clusterCIDR',
      value: networks.join(','),
      agrees: (given) => networks.every((network) => normalized(given).includes(network)),
      source: '"Network"',
    },
  ];
}

function readBackend(backend: Readonly<Record<string, unknown>>): Said[] {
  const { Type: type, GBP: gbp, DirectRouting: direct } = backend;
  const mode = 'nodeplane.routes.mode';
  if (type === 'host-gw') return [{ path: mode, value: 'host-gw', source: '"Type"' }];
  if (type !== 'vxlan') {
    throw unusable(`nodeplane has no backend of "Type" ${JSON.stringify(type) ?? 'none'}, but "vxlan" and "host-gw"`);
  }
  if (gbp === true) throw unusable('nodeplane has no group policy ("GBP")');
  const vni = numberIn(backend, 'VNI') ?? VXLAN.vni;
  const port = numberIn(backend, 'Port') || VXLAN.port;
  const mtu = numberIn(backend, 'MTU');
  return [
    {
      path: mode,
      value: direct === true ? 'auto' : 'vxlan',
      agrees: (given) => ['auto', 'vxlan'].includes(given),
      source: '"Type"',
    },
    { path: 'nodeplane.routes.vni', value: vni, source: '"VNI"' },
    { path: 'nodeplane.routes.port', value: port, source: '"Port"' },
    ...(mtu ? [{ path: 'nodeplane.routes.mtu', value: mtu - VXLAN_OVERHEAD, source: '"MTU"' } as const] : []),
  ];
}

function networksOf(conf: Readonly<Record<string, unknown>>): string[] {
  const { EnableIPv4: withIpv4 = true, EnableIPv6: withIpv6 = false } = conf;
  const networks = [
    ...(withIpv4 === true ? [networkIn(conf, 'Network', 'IPv4')] : []),
    ...(withIpv6 === true ? [networkIn(conf, 'IPv6Network', 'IPv6')] : []),
  ];
  if (networks.length === 0) throw unusable('it enables neither IPv4 nor IPv6');
  return networks;
}

/** The CIDRs of a list, each as it is written without host bits. */
function normalized(list: string): string[] {
  return list.split(',').flatMap((text) => {
    const range = tryParseCidr(text.trim());
    return range ? [formatCidr(range)] : [];
  });
}

function networkIn(conf: Readonly<Record<string, unknown>>, name: string, family: string): string {
  const range = typeof conf[name] === 'string' ? tryParseCidr(conf[name]) : undefined;
  if (range?.address.family !== family)
    throw unusable(`"${name}" is ${JSON.stringify(conf[name]) ?? 'missing'}, and no ${family} CIDR`);
  return formatCidr(range);
}

function numberIn(backend: Readonly<Record<string, unknown>>, name: string): number | undefined {
  const value = backend[name];
  if (value === undefined) return undefined;
  if (typeof value !== 'number' || !Number.isInteger(value))
    throw unusable(`"${name}" is ${JSON.stringify(value)}, and no whole number`);
  return value;
}

function unusable(reason: string): NodeplaneError {
  return new NodeplaneError('ERR_CONFIG', reason);
}
