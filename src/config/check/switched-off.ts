import { fieldAt, valueAt } from '../file/field-path.ts';
import { ALL_FIELDS, type Configuration, type FieldPath, isField, type Section } from '../file/schema.ts';
import { flagFor } from '../problems.ts';

/** Options that act beside another one alone. */
interface Dependents {
  /** Their path, or what it begins with. */
  readonly below: string;
  /** Those below it that act by themselves, or are that other one. */
  readonly but?: readonly FieldPath[];
  /** Why they do nothing as configured; undefined: they act. */
  readonly idle: (own: Configuration['nodeplane']) => string | undefined;
}

type Routes = Configuration['nodeplane']['routes'];

const usesTunnel = ({ mode, tunnel }: Routes, kind: string) => mode === kind || (mode === 'auto' && tunnel === kind);

/** The first that says something of an option counts. */
const ALL: readonly Dependents[] = [
  {
    below: 'nodeplane.cni.',
    but: ['nodeplane.cni.enabled'],
    idle: ({ cni }) => (cni.enabled ? undefined : 'it is for --cni'),
  },
  {
    below: 'nodeplane.cni.macvlan.',
    but: ['nodeplane.cni.macvlan.namespaces'],
    idle: ({ cni }) => (cni.macvlan.namespaces?.length ? undefined : '--cni-macvlan-namespaces names none'),
  },
  {
    below: 'nodeplane.pools.',
    but: ['nodeplane.pools.podCIDRsFrom'],
    idle: ({ pools }) => (pools.podCIDRsFrom === 'node' ? 'it is for --pod-cidrs-from pool' : undefined),
  },
  {
    below: 'nodeplane.routes.',
    but: ['nodeplane.routes.mode'],
    idle: ({ routes }) => (routes.mode === 'none' ? '--routes is none' : undefined),
  },
  {
    below: 'nodeplane.routes.tunnel',
    idle: ({ routes: { mode, tunnel } }) =>
      mode === 'auto' || mode === tunnel ? undefined : `it is for --routes auto, and that is ${mode}`,
  },
  {
    below: 'nodeplane.routes.wireguard.',
    idle: ({ routes }) => (usesTunnel(routes, 'wireguard') ? undefined : 'no tunnel is WireGuard'),
  },
  ...['nodeplane.routes.vni', 'nodeplane.routes.port'].map((below) => ({
    below,
    idle: ({ routes }: Configuration['nodeplane']) => (usesTunnel(routes, 'vxlan') ? undefined : 'no tunnel is VXLAN'),
  })),
  {
    below: 'nodeplane.routes.mtu',
    idle: ({ routes }) => (routes.mode === 'host-gw' ? 'there is no tunnel' : undefined),
  },
];

const OWN = pathsOf(ALL_FIELDS).filter((path) => path.startsWith('nodeplane.'));

/**
 * Options of nodeplane's own that do nothing because what they are for is switched off, and are not checked then: a sentence for
 * each that has another value than its default. Without `--routes auto`, `--routes-tunnel wireguard` encrypts nothing.
 */
export function switchedOffWarnings(effective: Configuration): string[] {
  return OWN.flatMap((path) => {
    const { type, fallback } = fieldAt(path);
    if (type.toFlag(valueAt(effective, path) as never) === type.toFlag(fallback as never)) return [];
    const reasons = ALL.filter(({ below, but }) => path.startsWith(below) && !but?.includes(path));
    const [reason] = reasons.flatMap(({ idle }) => idle(effective.nodeplane) ?? []);
    const flag = flagFor(path);
    return reason === undefined ? [] : [`${path}${flag ? ` (--${flag})` : ''} has no effect: ${reason}`];
  });
}

function pathsOf(section: Section, prefix = ''): FieldPath[] {
  return Object.entries(section).flatMap(([name, entry]) =>
    isField(entry) ? [`${prefix}${name}` as FieldPath] : pathsOf(entry, `${prefix}${name}.`),
  );
}
