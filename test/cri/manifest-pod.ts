import { mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { V1Container, V1PodSpec, V1VolumeMount } from '@kubernetes/client-node';
import type { Containerd } from './containerd.ts';
import type { ContainerConfig, ContainerMount, PodSandboxConfig } from './cri-client.ts';
import { until } from './until.ts';

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
  /** What its containers wrote so far, line by line; those that ran first come first. */
  logs(): string[];
  /** Runs a program in the container that stays, with that one's privileges, and gives what it printed. */
  run(...command: string[]): Promise<{ readonly exitCode: number; readonly output: string }>;
  /** As a kubelet ends a container: SIGTERM, and SIGKILL after a grace time. Removes the pod too. */
  remove(): Promise<void>;
}

/** What a kubelet has the runtime hide from, and make read-only for, containers that are not privileged (procMount: Default). */
const MASKED_PATHS = [
  ...['acpi', 'asound', 'kcore', 'keys', 'latency_stats', 'sched_debug', 'scsi', 'timer_list'].map(
    (name) => `/proc/${name}`,
  ),
  '/sys/firmware',
];
const READ_ONLY_PATHS = ['bus', 'fs', 'irq', 'sys', 'sysrq-trigger'].map((name) => `/proc/${name}`);

const SERVICE_ACCOUNT = '/var/run/secrets/kubernetes.io/serviceaccount';

/**
 * Runs a pod with one container, and any that run before it, on the node's network, as a kubelet does it: command, environment,
 * mounts and security context are the manifest's, those of the pod where the container names none.
 *
 * @throws for what a manifest may say and this does not know, and when a container that runs before fails, with its log
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
  const all = [...(spec.initContainers ?? []), container];
  const privileged = all.some(({ securityContext }) => securityContext?.privileged);
  const namespaceOptions = { network: 'NODE' } as const;
  const logDirectory = join(enclosure.folder, 'logs', name);
  mkdirSync(logDirectory, { recursive: true });
  const sandboxConfig: PodSandboxConfig = {
    metadata: { name, uid: `uid-${name}`, namespace: 'kube-system', attempt: 0 },
    logDirectory,
    linux: { cgroupParent: `/${enclosure.cgroup}`, securityContext: { namespaceOptions, privileged } },
  };
  const sources = volumeSources(spec, surroundings, containerd, name);
  const { podSandboxId } = await cri.call('RunPodSandbox', { config: sandboxConfig });
  const logs = () => all.flatMap((one) => readLog(join(logDirectory, logFile(one))));
  const start = async (one: V1Container) => {
    const mounts = [
      ...(one.volumeMounts ?? []).map((mount) => mountAt(mount.mountPath, sources[mount.name], mount)),
      mountAt(SERVICE_ACCOUNT, surroundings.serviceAccount, { readOnly: true }),
    ];
    const config = containerOf(one, spec, mounts, surroundings);
    const { containerId } = await cri.call('CreateContainer', { podSandboxId, config, sandboxConfig });
    await cri.call('StartContainer', { containerId });
    return containerId;
  };
  for (const one of spec.initContainers ?? []) {
    const containerId = await start(one);
    let exitCode = 0;
    await until(`${one.name} ends`, async () => {
      const { status } = await cri.call('ContainerStatus', { containerId });
      if (status.state !== 'CONTAINER_EXITED') throw new Error(status.state);
      exitCode = status.exitCode;
    });
    if (exitCode !== 0) throw new Error(`${one.name} ended with ${exitCode}: ${logs().join('\n')}`);
  }
  const containerId = await start(container);
  return {
    logs,
    async run(...cmd) {
      const { stdout, stderr, exitCode } = await cri.call('ExecSync', { containerId, cmd, timeout: 30 });
      return { exitCode, output: `${stdout}${stderr}` };
    },
    async remove() {
      const timeout = spec.terminationGracePeriodSeconds ?? 30;
      await cri.call('StopContainer', { containerId, timeout });
      await cri.call('StopPodSandbox', { podSandboxId });
      await cri.call('RemovePodSandbox', { podSandboxId });
    },
  };
}

function containerOf(
  container: V1Container,
  { securityContext: ofPod = {} }: V1PodSpec,
  mounts: readonly ContainerMount[],
  { image, nodeName }: Surroundings,
): ContainerConfig {
  const { name, command = [], args = [], env = [], securityContext = {} } = container;
  const envs = env.map(({ name: key, value, valueFrom }) => {
    if (value !== undefined) return { key, value };
    if (valueFrom?.fieldRef?.fieldPath === 'spec.nodeName') return { key, value: nodeName };
    throw new Error(`Environment variable ${key}: only values and spec.nodeName are known here`);
  });
  const expand = (text: string) =>
    text.replace(/\$\((\w+)\)/g, (whole, key) => envs.find((variable) => variable.key === key)?.value ?? whole);
  const { capabilities, privileged = false, readOnlyRootFilesystem = false } = securityContext;
  const { allowPrivilegeEscalation = true } = securityContext;
  const seccompProfile = securityContext.seccompProfile ?? ofPod.seccompProfile;
  const selinuxOptions = securityContext.seLinuxOptions ?? ofPod.seLinuxOptions;
  return {
    metadata: { name },
    image: { image },
    command: [...command, ...args].map(expand),
    envs,
    mounts,
    logPath: logFile(container),
    linux: {
      securityContext: {
        capabilities: { addCapabilities: capabilities?.add ?? [], dropCapabilities: capabilities?.drop ?? [] },
        privileged,
        namespaceOptions: { network: 'NODE' },
        ...(selinuxOptions && { selinuxOptions }),
        readonlyRootfs: readOnlyRootFilesystem,
        noNewPrivs: !allowPrivilegeEscalation,
        ...(!privileged && { maskedPaths: MASKED_PATHS, readonlyPaths: READ_ONLY_PATHS }),
        seccomp: { profileType: seccompProfile?.type === 'RuntimeDefault' ? 'RuntimeDefault' : 'Unconfined' },
      },
    },
  };
}

const logFile = ({ name }: V1Container): string => `${name}.log`;

/** How a kubelet makes sure that a path of the node is there, by the volume's type; none: it does not look. */
const PATH_CHECKS: Readonly<Record<string, readonly string[]>> = {
  Directory: ['test', '-d'],
  DirectoryOrCreate: ['mkdir', '-p'],
  FileOrCreate: ['touch'],
};

/** Where each volume's files lie, by its name, among the runtime's mounts. */
function volumeSources(
  { volumes = [] }: V1PodSpec,
  { configMaps, hostPaths = {} }: Surroundings,
  { enclosure }: Containerd,
  pod: string,
): Readonly<Record<string, string | undefined>> {
  return Object.fromEntries(
    volumes.map(({ name, hostPath, configMap, emptyDir }) => {
      if (configMap?.name !== undefined) return [name, configMaps[configMap.name]];
      if (hostPath) {
        const path = hostPaths[hostPath.path] ?? hostPath.path;
        const [program, ...args] = PATH_CHECKS[hostPath.type ?? ''] ?? ['true'];
        enclosure.run(program!, [...args, path]);
        return [name, path];
      }
      if (emptyDir) {
        const path = join(enclosure.folder, 'volumes', pod, name);
        mkdirSync(path, { recursive: true, mode: 0o777 });
        if (emptyDir.medium === 'Memory') {
          const size = emptyDir.sizeLimit?.replace(/Mi$/, 'm') ?? '50%';
          enclosure.run('mount', ['-t', 'tmpfs', '-o', `size=${size}`, 'tmpfs', path]);
        }
        return [name, path];
      }
      throw new Error(`Volume "${name}": only ConfigMaps, paths of the node and empty directories are known here`);
    }),
  );
}

function mountAt(
  containerPath: string,
  hostPath: string | undefined,
  { readOnly = false, mountPropagation = 'None' }: Partial<V1VolumeMount>,
): ContainerMount {
  if (hostPath === undefined) throw new Error(`${containerPath}: there is no such volume`);
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
