import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { createHost, type Host } from '../lab/host.ts';
import type { TestNamespace } from '../lab/namespace.ts';
import type { Containerd } from './containerd.ts';
import type { PodSandboxConfig, PodSandboxStatus } from './cri-client.ts';
import { IMAGE } from './image.ts';

/** A pod made as a kubelet makes it. As a host it is any process in the pod. */
export interface CriPod extends Host {
  readonly sandboxId: string;
  status(): Promise<PodSandboxStatus>;
  /** Starts a container of the test image. */
  startContainer(name: string, command: readonly string[]): Promise<Container>;
  /** StopPodSandbox, which sends DEL. A kubelet may repeat it. */
  stop(): Promise<void>;
  /** StopPodSandbox and RemovePodSandbox. */
  remove(): Promise<void>;
}

export interface Container {
  /** Runs a command inside and returns its output; rejects when it fails. */
  exec(...command: readonly string[]): Promise<string>;
}

export interface PodSettings extends Pick<PodSandboxConfig, 'portMappings' | 'annotations'> {
  /** Counts the sandboxes of one pod. @default 0 */
  readonly attempt?: number;
}

/** RunPodSandbox. Rejects with the runtime's words, which hold the plugin's. */
export async function runPod(
  containerd: Containerd,
  name: string,
  { attempt = 0, ...settings }: PodSettings = {},
): Promise<CriPod> {
  const { cri, enclosure } = containerd;
  const config: PodSandboxConfig = {
    metadata: { name, uid: `uid-${name}`, namespace: 'default', attempt },
    hostname: name,
    logDirectory: join(enclosure.folder, 'logs', name),
    linux: { cgroupParent: `/${enclosure.cgroup}` },
    ...settings,
  };
  const { podSandboxId } = await cri.call('RunPodSandbox', { config });
  const { status, info } = await cri.call('PodSandboxStatus', { podSandboxId, verbose: true });
  const { pid } = JSON.parse(info.info!) as { pid: number };
  const ips = [status.network!.ip, ...status.network!.additionalIps.map(({ ip }) => ip)];
  const host = createHost({ name, namespace: namespaceOf(name, pid), ips });
  const stop = async () => void (await cri.call('StopPodSandbox', { podSandboxId }));
  return {
    ...host,
    sandboxId: podSandboxId,
    status: async () => (await cri.call('PodSandboxStatus', { podSandboxId })).status,
    async startContainer(containerName, command) {
      const { containerId } = await cri.call('CreateContainer', {
        podSandboxId,
        config: { metadata: { name: containerName }, image: { image: IMAGE }, command },
        sandboxConfig: config,
      });
      await cri.call('StartContainer', { containerId });
      return { exec: (...cmd) => exec(containerd, containerId, cmd) };
    },
    stop,
    async remove() {
      await host.remove();
      await stop();
      await cri.call('RemovePodSandbox', { podSandboxId });
    },
  };
}

async function exec({ cri }: Containerd, containerId: string, cmd: readonly string[]): Promise<string> {
  const { stdout, stderr, exitCode } = await cri.call('ExecSync', { containerId, cmd, timeout: 10 });
  if (exitCode !== 0) throw new Error(`"${cmd.join(' ')}" ended with ${exitCode}: ${stdout}${stderr}`);
  return stdout.toString();
}

/** A pod's namespace as its first process shows it: the runtime's own file is visible among its mounts only. */
export function namespaceOf(name: string, pid: number): TestNamespace {
  const path = `/proc/${pid}/ns/net`;
  return {
    name,
    path,
    run: (program, ...args) => execFileSync('nsenter', [`--net=${path}`, '--', program, ...args], { encoding: 'utf8' }),
    // It is the runtime's.
    remove: () => undefined,
  };
}
