import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import * as models from '@kubernetes/client-node';
import { describe, expect, it } from 'vitest';
import { parse, parseAllDocuments } from 'yaml';

// The manifests of deploy/ against the API's own types, as the Kubernetes client generates them from its specification.

const deploy = new URL('../../deploy/', import.meta.url).pathname;
const files = readdirSync(deploy, { recursive: true, encoding: 'utf8' })
  // Those of deploy/monitoring are prometheus-operator's: test/lab/prometheus/alerts.test.ts.
  .filter((name) => /^(?!monitoring\/).*(?<!kustomization)\.yaml$/.test(name))
  .sort();
const objects = files.flatMap((file) =>
  parseAllDocuments(readFileSync(join(deploy, file), 'utf8')).map((document) => ({ file, object: document.toJS() })),
);

interface AttributeType {
  readonly baseName: string;
  readonly type: string;
}

const TYPES = models as unknown as Readonly<
  Record<string, { getAttributeTypeMap?: () => readonly AttributeType[] } | undefined>
>;

/** Every place where `value` does not fit the model class `type`. */
function misfits(value: unknown, type: string, path: string): string[] {
  const list = /^(?:Array|Set)<(.+)>$/.exec(type);
  if (list) {
    if (!Array.isArray(value)) return [`${path}: no list`];
    return value.flatMap((item, index) => misfits(item, list[1]!, `${path}[${index}]`));
  }
  const map = /^\{ \[key: string\]: (.+); \}$/.exec(type);
  if (map) return Object.entries(value as object).flatMap(([key, item]) => misfits(item, map[1]!, `${path}.${key}`));
  if (['string', 'number', 'boolean'].includes(type)) {
    return typeof value === type ? [] : [`${path}: ${typeof value} instead of ${type}`];
  }
  const attributes = TYPES[type]?.getAttributeTypeMap?.();
  // IntOrString and the like.
  if (!attributes) return [];
  return Object.entries(value as object).flatMap(([key, item]) => {
    const attribute = attributes.find(({ baseName }) => baseName === key);
    return attribute ? misfits(item, attribute.type, `${path}.${key}`) : [`${path}.${key}: no such field`];
  });
}

describe('deploy/', () => {
  it.each(objects.map(({ file, object }) => [`${file}: ${object.kind}`, object]))('%s fits the API', (_, object) => {
    expect(TYPES[`V1${object.kind}`]).toBeDefined();
    expect(misfits(object, `V1${object.kind}`, object.kind)).toEqual([]);
  });

  it('notices what does not fit', () => {
    const wrong = { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: 7 }, spek: {} };
    expect(misfits(wrong, 'V1ServiceAccount', 'it')).toEqual([
      'it.metadata.name: number instead of string',
      'it.spek: no such field',
    ]);
  });

  it('kustomizations name files and folders that exist, and every file is used', () => {
    const used = ['daemonset', 'base', 'agent', 'crds', 'pools', 'preflight'].flatMap((folder) => {
      const { resources, patches = [] } = parse(readFileSync(join(deploy, folder, 'kustomization.yaml'), 'utf8'));
      const paths = [...resources, ...patches.map(({ path }: { path: string }) => path)] as string[];
      return paths.map((path) => join(folder, path));
    });
    expect(used.filter((path) => path.endsWith('.yaml')).sort()).toEqual(files);
    expect(used).toContain('daemonset');
  });

  it('the component for pools grants the account of the DaemonSet what blocks need, and nothing else', () => {
    const of = (kind: string) =>
      objects.find((one) => one.file === 'pools/rbac.yaml' && one.object.kind === kind)!.object;
    const daemonSet = objects.find(({ file }) => file === 'daemonset/daemonset.yaml')!.object;
    const { metadata, rules } = of('ClusterRole');
    expect(rules).toEqual([
      {
        apiGroups: ['nodeplane.io'],
        resources: ['podcidrblocks'],
        verbs: ['get', 'list', 'watch', 'create', 'update', 'patch', 'delete'],
      },
    ]);
    const { roleRef, subjects } = of('ClusterRoleBinding');
    expect(roleRef.name).toBe(metadata.name);
    expect(subjects).toMatchObject([{ kind: 'ServiceAccount', name: daemonSet.spec.template.spec.serviceAccountName }]);
    expect(parse(readFileSync(join(deploy, 'pools/kustomization.yaml'), 'utf8')).kind).toBe('Component');
  });

  it('the agent’s patch changes the container of the DaemonSet, and mounts only volumes there are', () => {
    const [whole, patch] = ['daemonset/daemonset.yaml', 'agent/daemonset-patch.yaml'].map(
      (name) => objects.find(({ file }) => file === name)!.object.spec.template.spec,
    );
    const [container] = patch.containers;
    expect(container.name).toBe(whole.containers[0].name);
    const names = [...whole.volumes, ...patch.volumes].map(({ name }: { name: string }) => name);
    expect(names).toEqual([...new Set(names)]);
    expect(names).toEqual(expect.arrayContaining(container.volumeMounts.map(({ name }: { name: string }) => name)));
  });

  it('the configuration is the one the DaemonSet mounts', () => {
    const find = (kind: string) =>
      objects.find(({ file, object }) => object.kind === kind && !file.startsWith('agent/'))!.object;
    const [container] = find('DaemonSet').spec.template.spec.containers;
    const mount = container.volumeMounts.find(({ name }: { name: string }) => name === 'kube-proxy');
    const flag = container.command.find((text: string) => text.startsWith('--config='));
    const { data } = find('ConfigMap');
    expect(Object.keys(data).map((key) => `--config=${mount.mountPath}/${key}`)).toContain(flag);
    expect(parse(data['config.conf'])).toMatchObject({
      kind: 'KubeProxyConfiguration',
      clientConnection: { kubeconfig: `${mount.mountPath}/kubeconfig.conf` },
    });
  });
});
