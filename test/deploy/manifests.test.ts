import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { V1Container, V1PodSpec } from '@kubernetes/client-node';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { API, misfits } from './api-schema.ts';
import { DEPLOY, daemonSetOf, grantedBy, MODES, type Rendered, render, renderSwap, renderWith } from './render.ts';

// What kustomize makes of deploy/ against the API's own schema, and what everybody who applies it relies on.

const POOLS = { resources: ['overlays/full/nftables'], components: ['components/pools'] };
const MONITORED = { resources: ['overlays/proxy/nftables'], components: ['components/service-monitor'] };

/** By name, what is rendered; of each a whole DaemonSet comes out. */
const RENDERED: Readonly<Record<string, readonly Rendered[]>> = {
  ...Object.fromEntries(MODES.map((mode) => [`proxy/${mode}`, render(`overlays/proxy/${mode}`)])),
  ...Object.fromEntries(MODES.map((mode) => [`full/${mode}`, render(`overlays/full/${mode}`)])),
  'full with pools': renderWith(POOLS),
  'proxy with a ServiceMonitor': renderWith(MONITORED),
  swapped: renderSwap(),
  'swapped image': renderSwap('overlays/swap/image'),
};
const names = Object.keys(RENDERED);
const podOf = (name: string): V1PodSpec => daemonSetOf(RENDERED[name]!).spec!.template.spec!;
const containersOf = (name: string) => [...(podOf(name).initContainers ?? []), ...podOf(name).containers];
const added = ({ securityContext }: V1Container) => [...(securityContext?.capabilities?.add ?? [])].sort();
const ofCore = ({ apiVersion }: Rendered) => apiVersion !== 'monitoring.coreos.com/v1';

describe('the schema', () => {
  it('is the one of a Kubernetes release', () => expect(API.version).toMatch(/^v1\.\d+\.\d+$/));

  it('notices what does not fit', () => {
    const wrong = { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: 7 }, secrets: {}, spek: {} };
    expect(misfits(wrong)).toEqual([
      'ServiceAccount.metadata.name: number instead of string',
      'ServiceAccount.secrets: object instead of array',
      'ServiceAccount.spek: no such field',
    ]);
    const [daemonSet] = RENDERED['proxy/iptables']!.filter(({ kind }) => kind === 'DaemonSet');
    const { template, ...others } = daemonSet!.spec;
    expect(misfits({ ...daemonSet, spec: others })).toEqual(['DaemonSet.spec.template: missing']);
    expect(misfits({ ...daemonSet, spec: others }, { partial: true })).toEqual([]);
    expect(misfits({ apiVersion: 'v1', kind: 'Pod' })[0]).toContain('not among the kinds');
  });
});

describe.each(names)('%s', (name) => {
  const objects = RENDERED[name]!;

  it('fits the API', () => expect(objects.filter(ofCore).flatMap((object) => misfits(object))).toEqual([]));

  it('mounts volumes there are, each path once', () => {
    const volumes = (podOf(name).volumes ?? []).map((volume) => volume.name);
    expect(volumes).toEqual([...new Set(volumes)]);
    for (const { volumeMounts = [] } of containersOf(name)) {
      expect(volumes).toEqual(expect.arrayContaining(volumeMounts.map((mount) => mount.name)));
      const paths = volumeMounts.map(({ mountPath }) => mountPath);
      expect(paths).toEqual([...new Set(paths)]);
    }
  });

  it('mounts a configuration that is there, at the place that the command names', () => {
    const [container] = podOf(name).containers;
    const mount = container!.volumeMounts!.find((one) => one.name === 'kube-proxy')!;
    const configMap = objects.find(({ kind }) => kind === 'ConfigMap')!;
    expect(podOf(name).volumes).toContainEqual({ name: 'kube-proxy', configMap: { name: configMap.metadata.name } });
    const files = Object.keys(configMap.data).map((file) => `--config=${mount.mountPath}/${file}`);
    for (const { command = [] } of containersOf(name)) {
      expect(files).toContain(command.find((text) => text.startsWith('--config=')));
    }
    expect(parse(configMap.data['config.conf'])).toMatchObject({
      kind: 'KubeProxyConfiguration',
      clientConnection: { kubeconfig: `${mount.mountPath}/kubeconfig.conf` },
    });
  });

  it('names the image by registry and digest', () => {
    for (const { image } of containersOf(name)) {
      expect(image).toMatch(/^registry\.example\/nodeplane\/nodeplane@sha256:[0-9a-f]{64}$/);
    }
  });
});

/** All but the one that changes the image alone, which leaves everything else as it was. */
const own = names.filter((name) => name !== 'swapped image');

describe.each(own)('%s', (name) => {
  it('has no privileges but capabilities, a read-only root and a filter for system calls', () => {
    expect(podOf(name).securityContext?.seccompProfile).toEqual({ type: 'RuntimeDefault' });
    for (const { securityContext, volumeMounts } of containersOf(name)) {
      expect(securityContext).toMatchObject({
        privileged: false,
        allowPrivilegeEscalation: false,
        readOnlyRootFilesystem: true,
        capabilities: { drop: ['ALL'] },
      });
      expect(volumeMounts).toContainEqual({ name: 'tmp', mountPath: '/tmp' });
    }
    const pods = name.startsWith('full');
    const [setUp, agent] = containersOf(name) as [V1Container, V1Container];
    expect(added(setUp)).toEqual([...(pods ? ['DAC_OVERRIDE'] : []), 'NET_ADMIN', 'NET_RAW', 'SYS_MODULE']);
    expect(added(agent)).toEqual(
      pods ? ['DAC_OVERRIDE', 'NET_ADMIN', 'NET_RAW', 'SYS_ADMIN'] : ['NET_ADMIN', 'NET_RAW'],
    );
  });

  it('can be rolled out and is restarted only for what a restart cures', () => {
    const { spec } = daemonSetOf(RENDERED[name]!);
    expect(spec!.updateStrategy!.rollingUpdate).toEqual({ maxUnavailable: '10%' });
    expect(spec!.minReadySeconds).toBe(10);
    expect(spec!.template.metadata!.annotations).toEqual({
      'cluster-autoscaler.kubernetes.io/enable-ds-eviction': 'false',
    });
    const { livenessProbe, readinessProbe, ports, resources } = podOf(name).containers[0]!;
    // On kubeadm's clusters healthzBindAddress may be the node's address.
    const host = name === 'swapped' ? undefined : '127.0.0.1';
    expect(livenessProbe?.httpGet).toEqual({ path: '/livez', port: 10256, ...(host && { host }) });
    expect(livenessProbe!.periodSeconds! * livenessProbe!.failureThreshold!).toBeGreaterThanOrEqual(60);
    expect(readinessProbe?.httpGet?.path).toBe('/readyz');
    // Declared ports of the node would keep a second pod from being scheduled, whatever it does with them.
    expect(ports).toBeUndefined();
    expect(Object.keys(resources!)).toEqual(['requests']);
    // Pods wait for an agent that attaches them.
    const attaches = name.startsWith('full');
    expect(resources!.requests).toEqual({ cpu: attaches ? '100m' : '20m', memory: '110Mi' });
    expect(podOf(name)).toMatchObject({
      hostNetwork: true,
      priorityClassName: 'system-node-critical',
      tolerations: [{ operator: 'Exists' }],
      nodeSelector: { 'kubernetes.io/os': 'linux' },
    });
  });
});

describe('the swap', () => {
  const [patch] = render('overlays/swap') as [Rendered];

  it('is a part of a DaemonSet that fits the API, without a selector, which nobody may change', () => {
    expect(misfits(patch, { partial: true })).toEqual([]);
    expect(patch.spec.selector).toBeUndefined();
    const [image] = render('overlays/swap/image') as [Rendered];
    expect(misfits(image, { partial: true })).toEqual([]);
    expect(image.spec).toEqual({
      template: { spec: { containers: [{ name: 'kube-proxy', image: expect.any(String) }] } },
    });
  });

  it('says the same as the base, but for what is the cluster’s own', () => {
    const base = daemonSetOf(RENDERED['proxy/iptables']!) as unknown as Rendered;
    const withoutHost = (container: Rendered) => ({
      ...container,
      command: ['/usr/local/bin/kube-proxy', ...container.command.slice(2)],
      livenessProbe: { ...container.livenessProbe, httpGet: { path: '/livez', port: 10256 } },
      readinessProbe: { ...container.readinessProbe, httpGet: { path: '/readyz', port: 10256 } },
    });
    const { containers, initContainers, securityContext, volumes } = base.spec.template.spec;
    expect(patch.spec.template.spec).toEqual({
      containers: containers.map(withoutHost),
      initContainers,
      securityContext,
      // The ConfigMap is kubeadm's.
      volumes: volumes.filter((volume: Rendered) => volume.name !== 'kube-proxy'),
    });
  });

  it.each(MODES)('leaves mode %s as the cluster has it', (mode) => {
    const configMap = renderSwap('overlays/swap', mode).find(({ kind }) => kind === 'ConfigMap')!;
    expect(configMap.metadata.name).toBe('kube-proxy');
    expect(parse(configMap.data['config.conf']).mode).toBe(mode);
  });
});

describe('permissions', () => {
  const accounts = (objects: readonly Rendered[]) =>
    objects.flatMap(({ kind, subjects = [] }) => (kind === 'ClusterRoleBinding' ? subjects : []));

  it.each(own.filter((name) => name !== 'swapped'))('of %s: each role is bound, to the pod’s account alone', (name) => {
    const objects = RENDERED[name]!;
    const { serviceAccountName } = podOf(name);
    expect(objects).toContainEqual(
      expect.objectContaining({
        kind: 'ServiceAccount',
        metadata: expect.objectContaining({ name: serviceAccountName }),
      }),
    );
    const account = { kind: 'ServiceAccount', name: serviceAccountName, namespace: 'kube-system' };
    for (const subject of accounts(objects)) expect(subject).toEqual(account);
    const bound = objects.flatMap(({ kind, roleRef }) => (kind === 'ClusterRoleBinding' ? [roleRef.name] : []));
    const roles = objects.flatMap(({ kind, metadata }) => (kind === 'ClusterRole' ? [metadata.name] : []));
    // The API server makes that role itself, and undoes changes of it.
    expect(bound.sort()).toEqual([...roles, 'system:node-proxier'].sort());
    expect(roles).not.toContain('system:node-proxier');
  });

  it('are the same in every mode', () => {
    for (const part of ['proxy', 'full']) {
      const rules = MODES.map((mode) => grantedBy(RENDERED[`${part}/${mode}`]!));
      for (const other of rules) expect(other).toEqual(rules[0]);
    }
  });
});

describe('the look before the first start', () => {
  const objects = render('overlays/preflight');

  it('fits the API, and may change nothing', () => {
    expect(objects.flatMap((object) => misfits(object))).toEqual([]);
    const verbs = objects.flatMap(({ rules = [] }) => rules.flatMap((rule: { verbs: string[] }) => rule.verbs));
    expect(new Set(verbs)).toEqual(new Set(['get', 'list', 'watch']));
  });

  it('has no privileges, and mounts the node’s files read-only', () => {
    const { initContainers = [], containers, hostNetwork } = daemonSetOf(objects).spec!.template.spec!;
    expect(hostNetwork).toBe(true);
    for (const { securityContext, volumeMounts = [] } of [...initContainers, ...containers]) {
      expect(securityContext).toMatchObject({
        allowPrivilegeEscalation: false,
        readOnlyRootFilesystem: true,
        capabilities: { drop: ['ALL'] },
      });
      for (const { readOnly } of volumeMounts) expect(readOnly).toBe(true);
    }
  });

  it('waits for no ConfigMap that may not be there: its own has defaults, which the cluster’s goes before', () => {
    const own = objects.find(({ kind }) => kind === 'ConfigMap')!;
    expect(parse(own.data['config.conf'])).toEqual({
      apiVersion: 'kubeproxy.config.k8s.io/v1alpha1',
      kind: 'KubeProxyConfiguration',
    });
    const { volumes } = daemonSetOf(objects).spec!.template.spec!;
    const sources = [{ configMap: { name: own.metadata.name } }, { configMap: { name: 'kube-proxy', optional: true } }];
    expect(volumes).toContainEqual({ name: 'kube-proxy', projected: { sources } });
  });
});

describe('the way back', () => {
  const objects = render('overlays/way-back');

  it('fits the API, asks nothing of it, and has the node’s network, locks and two capabilities', () => {
    expect(objects.flatMap((object) => misfits(object))).toEqual([]);
    expect(objects.map(({ kind }) => kind)).toEqual(['DaemonSet']);
    const { initContainers, containers, ...pod } = daemonSetOf(objects).spec!.template.spec!;
    expect(pod).toMatchObject({ hostNetwork: true, automountServiceAccountToken: false });
    const bare = { allowPrivilegeEscalation: false, readOnlyRootFilesystem: true };
    const [cleanUp, done] = [...initContainers!, ...containers];
    expect(cleanUp!.command).toEqual(['/usr/local/bin/nodeplane', 'cleanup', '--leave-kube-proxy']);
    expect(cleanUp!.securityContext).toMatchObject({
      ...bare,
      capabilities: { drop: ['ALL'], add: ['NET_ADMIN', 'NET_RAW'] },
    });
    expect(cleanUp!.volumeMounts).toEqual([
      { name: 'xtables-lock', mountPath: '/run/xtables.lock' },
      { name: 'run', mountPath: '/run/nodeplane', readOnly: true },
    ]);
    expect(pod.volumes!.map(({ name, hostPath }) => [name, hostPath?.path])).toEqual([
      ['xtables-lock', '/run/xtables.lock'],
      ['run', '/run/nodeplane'],
    ]);
    expect(done!.securityContext).toEqual({ ...bare, runAsUser: 65534, capabilities: { drop: ['ALL'] } });
  });
});

it('each mode’s configuration is that mode’s, and the rest is the same', () => {
  const configs = MODES.map((mode) => readFileSync(join(DEPLOY, `components/${mode}/config.conf`), 'utf8'));
  expect(configs.map((text) => parse(text).mode)).toEqual(MODES);
  const [first, ...others] = configs.map((text) => text.replace(/^mode: .*$/m, ''));
  for (const other of others) expect(other).toBe(first);
});

it('every file below deploy/ is used by some kustomization', () => {
  const kustomizations = readdirSync(DEPLOY, { recursive: true, encoding: 'utf8' }).filter((path) =>
    path.endsWith('kustomization.yaml'),
  );
  const used = kustomizations.flatMap((path) => {
    const {
      resources = [],
      patches = [],
      configMapGenerator = [],
      components = [],
    } = parse(readFileSync(join(DEPLOY, path), 'utf8'));
    const files = configMapGenerator.flatMap((one: { files: string[] }) => one.files);
    const named = [
      ...resources,
      ...components,
      ...files,
      ...patches.flatMap((one: { path?: string }) => one.path ?? []),
    ];
    return named.map((name: string) => join(path, '..', name));
  });
  const files = readdirSync(DEPLOY, { recursive: true, encoding: 'utf8' }).filter(
    (path) => /\.(yaml|conf)$/.test(path) && !path.endsWith('kustomization.yaml'),
  );
  expect(files.filter((path) => !used.includes(path))).toEqual([]);
});
