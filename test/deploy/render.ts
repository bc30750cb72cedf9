import { execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { V1DaemonSet } from '@kubernetes/client-node';
import { parseAllDocuments, stringify } from 'yaml';
import type { PolicyRule } from '../fakes/api-server/index.ts';

/** Where the manifests are. */
export const DEPLOY = fileURLToPath(new URL('../../deploy/', import.meta.url));

const KUBECTL = fileURLToPath(new URL('../../.cache/kubectl/kubectl', import.meta.url));

export const MODES = ['iptables', 'nftables', 'ipvs'] as const;

/** An object as kubectl would send it. */
// biome-ignore lint/suspicious/noExplicitAny: what kustomize makes of YAML; the tests are what says how it is.
export type Rendered = Readonly<Record<string, any>>;

/** What `kubectl kustomize` makes of a folder below deploy/. Throws with its words. */
export function render(folder: string): readonly Rendered[] {
  return renderFolder(join(DEPLOY, folder));
}

/** The same of a kustomization that somebody writes who uses ours; its paths begin in deploy/. */
export function renderWith(kustomization: {
  readonly resources?: readonly string[];
  readonly components?: readonly string[];
  readonly patches?: readonly object[];
  readonly images?: readonly object[];
  readonly configMapGenerator?: readonly object[];
  /** Beside it, by name. */
  readonly files?: Readonly<Record<string, string>>;
}): readonly Rendered[] {
  const { files = {}, resources = [], components = [], ...others } = kustomization;
  const folder = mkdtempSync(join(tmpdir(), 'kustomization-'));
  // kustomize takes no absolute paths.
  const fromThere = (paths: readonly string[]) =>
    paths.map((path) => (path in files ? path : relative(folder, join(DEPLOY, path))));
  try {
    for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text);
    const text = { ...others, resources: fromThere(resources), components: fromThere(components) };
    writeFileSync(join(folder, 'kustomization.yaml'), stringify(text));
    return renderFolder(folder);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** kubeadm's DaemonSet and ConfigMap with overlays/swap on them: what server-side apply makes of the DaemonSet in a cluster. */
export function renderSwap(overlay = 'overlays/swap', mode = 'iptables'): readonly Rendered[] {
  const read = (file: string) => readFileSync(new URL(file, import.meta.url), 'utf8');
  return renderWith({
    resources: ['kubeadm.yaml'],
    patches: [{ path: 'swap.yaml' }],
    files: {
      'kubeadm.yaml': read('kubeadm-kube-proxy.yaml').replace('mode: ""', `mode: "${mode}"`),
      'swap.yaml': render(overlay).map((object) => stringify(object))[0]!,
    },
  });
}

function renderFolder(folder: string): readonly Rendered[] {
  if (!existsSync(KUBECTL)) throw new Error(`Cannot find "${KUBECTL}": run scripts/setup`);
  const text = execFileSync(KUBECTL, ['kustomize', folder], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] });
  return parseAllDocuments(text).map((document) => document.toJS());
}

/** The only DaemonSet. */
export function daemonSetOf(objects: readonly Rendered[]): V1DaemonSet {
  const [found, ...more] = objects.filter(({ kind }) => kind === 'DaemonSet');
  if (!found || more.length > 0) throw new Error('Not one DaemonSet');
  return found as V1DaemonSet;
}

/** What the roles among the objects grant to whom they are bound to, all of them to the DaemonSet's account. */
export function grantedBy(objects: readonly Rendered[]): readonly PolicyRule[] {
  return objects.flatMap(({ kind, rules }) => (kind === 'ClusterRole' || kind === 'Role' ? rules : []));
}

/** The role that the API server makes for proxies (Kubernetes 1.36: plugin/pkg/auth/authorizer/rbac/bootstrappolicy). */
export const SYSTEM_NODE_PROXIER: readonly PolicyRule[] = [
  { apiGroups: [''], resources: ['services', 'endpoints'], verbs: ['list', 'watch'] },
  { apiGroups: [''], resources: ['nodes'], verbs: ['get', 'list', 'watch'] },
  { apiGroups: ['', 'events.k8s.io'], resources: ['events'], verbs: ['create', 'patch', 'update'] },
  { apiGroups: ['discovery.k8s.io'], resources: ['endpointslices'], verbs: ['list', 'watch'] },
  { apiGroups: ['networking.k8s.io'], resources: ['servicecidrs'], verbs: ['list', 'watch'] },
];
