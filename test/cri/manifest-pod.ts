import { mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { V1Container, V1PodSpec, V1VolumeMount } from '@kubernetes/client-node';
import type { Containerd } from './containerd.ts';
import type { ContainerConfig, ContainerMount, PodSandboxConfig } from './cri-client.ts';

/** What of the node and the cluster a pod's manifest refers to. */
export interface Surroundings {
  /** The image in place of the manifest's. */
  readonly image: string;
  readonly nodeName: string;
  /** Where the files of a ConfigMap lie, by its name. */
  readonly configMaps: Readonly<Record<string, string>>;
  /** Where the service account's files lie. */
  readonly serviceAccount: string;
  /** The path that stands for one of the node's. @default itself, among the runtime's mounts */
  readonly hostPaths?: Readonly<Record<string, string>>;
}

/** A pod made out of a manifest. */
export interface ManifestPod {
  /** What its container wrote so far, line by line. */
  logs(): string[];
  /** As a kubelet ends a container: SIGTERM, and SIGKILL after a grace time. Removes the pod too. */
  remove(): Promise<void>;
}

const SERVICE_ACCOUNT = '/var/run/secrets/kubernetes.io/serviceaccount';
const GRACE_SECONDS = 30;

/**
 * Runs a pod with one container on the node's network, as a kubelet does it: command, environment, mounts and security context are
 * the manifest's.
 *
 * @throws for what a manifest may say and this does not know
 */
export async function runManifestPod(
  containerd: Containerd,
  name: string,
  spec: V1PodSpec,
  surroundings: Surroundings,
): Promise<ManifestPod> {
  const { cri, enclosure } = containerd;
  const [container, ...others] = spec.containers;
  if (!container || others.length > 0 || !spec.hostNetwork) throw new Error('Not one container on the node’s network');
  const privileged = container.securityContext?.privileged ?? false;
  const namespaceOptions = { network: 'NODE' } as const;
  const logDirectory = join(enclosure.folder, 'logs', name);
  mkdirSync(logDirectory, { recursive: true });
  const sandboxConfig: PodSandboxConfig = {
    metadata: { name, uid: `uid-${name}`, namespace: 'kube-system', attempt: 0 },
    logDirectory,
    linux: { cgroupParent: `/${enclosure.cgroup}`, securityContext: { namespaceOptions, privileged } },
  };
  const { podSandboxId } = await cri.call('RunPodSandbox', { config: sandboxConfig });
  const mounts = [
    ...(container.volumeMounts ?? []).map((mount) => mountOf(mount, spec, surroundings)),
    mountAt(SERVICE_ACCOUNT, surroundings.serviceAccount, { readOnly: true }),
  ];
  const config = containerOf(container, mounts, surroundings);
  const { containerId } = await cri.call('CreateContainer', { podSandboxId, config, sandboxConfig });
  await cri.call('StartContainer', { containerId });
  return {
    logs: () => readLog(join(logDirectory, config.logPath!)),
    async remove() {
      await cri.call('StopContainer', { containerId, timeout: GRACE_SECONDS });
      await cri.call('StopPodSandbox', { podSandboxId });
      await cri.call('RemovePodSandbox', { podSandboxId });
    },
  };
}

function containerOf(
  { name, command = [], args = [], env = [], securityContext = {} }: V1Container,
  mounts: readonly ContainerMount[],
  { image, nodeName }: Surroundings,
): ContainerConfig {
  const envs = env.map(({ name: key, value, valueFrom }) => {
    if (value !== undefined) return { key, value };
    if (valueFrom?.fieldRef?.fieldPath === 'spec.nodeName') return { key, value: nodeName };
    throw new Error(`Environment variable ${key}: only values and spec.nodeName are known here`);
  });
  const expand = (text: string) =>
    text.replace(/\$\((\w+)\)/g, (whole, key) => envs.find((variable) => variable.key === key)?.value ?? whole);
  const { capabilities, privileged = false, readOnlyRootFilesystem = false } = securityContext;
  const { allowPrivilegeEscalation = true, seccompProfile } = securityContext;
  return {
    metadata: { name },
    image: { image },
    command: [...command, ...args].map(expand),
    envs,
    mounts,
    logPath: `${name}.log`,
    linux: {
      securityContext: {
        capabilities: { addCapabilities: capabilities?.add ?? [], dropCapabilities: capabilities?.drop ?? [] },
        privileged,
        namespaceOptions: { network: 'NODE' },
        readonlyRootfs: readOnlyRootFilesystem,
        noNewPrivs: !allowPrivilegeEscalation,
        seccomp: { profileType: seccompProfile?.type === 'RuntimeDefault' ? 'RuntimeDefault' : 'Unconfined' },
      },
    },
  };
}

function mountOf(mount: V1VolumeMount, { volumes = [] }: V1PodSpec, surroundings: Surroundings): ContainerMount {
  const { configMaps, hostPaths = {} } = surroundings;
  const { hostPath, configMap } = volumes.find(({ name }) => name === mount.name) ?? {};
  if (configMap?.name !== undefined) return mountAt(mount.mountPath, configMaps[configMap.name]!, mount);
  if (hostPath) return mountAt(mount.mountPath, hostPaths[hostPath.path] ?? hostPath.path, mount);
  throw new Error(`Volume "${mount.name}": only ConfigMaps and paths of the node are known here`);
}

function mountAt(
  containerPath: string,
  hostPath: string,
  { readOnly = false, mountPropagation = 'None' }: Partial<V1VolumeMount>,
): ContainerMount {
  const propagation = mountPropagation === 'None' ? 'PROPAGATION_PRIVATE' : 'PROPAGATION_HOST_TO_CONTAINER';
  if (mountPropagation === 'Bidirectional') throw new Error(`${containerPath}: no pod here may mount for the node`);
  return { containerPath, hostPath, readonly: readOnly, propagation };
}

/** The texts of a log in the CRI's format: time, stream, `F` for a whole line or `P` for a part, text. */
function readLog(file: string): string[] {
  const parts = readFileSync(file, 'utf8').split('\n').filter(Boolean);
  const text = parts.map((part) => {
    const [, kind, rest = ''] = /^\S+ \S+ ([FP])\S* (.*)$/.exec(part) ?? [];
    return kind === 'P' ? rest : `${rest}\n`;
  });
  return text.join('').split('\n').filter(Boolean);
}
