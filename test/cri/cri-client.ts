import { credentials, loadPackageDefinition, type ServiceError } from '@grpc/grpc-js';
import { loadSync } from '@grpc/proto-loader';
import { repositoryFile } from '../lab/programs.ts';

/** What a kubelet tells the runtime of a pod. */
export interface PodSandboxConfig {
  readonly metadata: {
    readonly name: string;
    readonly uid: string;
    readonly namespace: string;
    readonly attempt: number;
  };
  readonly hostname?: string;
  readonly logDirectory?: string;
  readonly portMappings?: readonly PortMapping[];
  readonly annotations?: Readonly<Record<string, string>>;
  readonly linux?: {
    readonly cgroupParent: string;
    readonly securityContext?: { readonly namespaceOptions?: NamespaceOptions; readonly privileged?: boolean };
  };
}

/** Whose namespaces: the pod's own (@default), or the node's. */
export interface NamespaceOptions {
  readonly network?: 'POD' | 'NODE';
}

/** What a kubelet tells the runtime of a container. */
export interface ContainerConfig {
  readonly metadata: { readonly name: string };
  readonly image: { readonly image: string };
  readonly command: readonly string[];
  readonly envs?: readonly { readonly key: string; readonly value: string }[];
  readonly mounts?: readonly ContainerMount[];
  /** Below the sandbox's log directory. */
  readonly logPath?: string;
  readonly linux?: {
    readonly securityContext: {
      readonly capabilities?: {
        readonly addCapabilities: readonly string[];
        readonly dropCapabilities: readonly string[];
      };
      readonly privileged?: boolean;
      readonly namespaceOptions?: NamespaceOptions;
      /** Ignored by a runtime without SELinux. */
      readonly selinuxOptions?: { readonly type?: string; readonly level?: string };
      readonly readonlyRootfs?: boolean;
      readonly noNewPrivs?: boolean;
      readonly maskedPaths?: readonly string[];
      readonly readonlyPaths?: readonly string[];
      readonly seccomp?: { readonly profileType: 'RuntimeDefault' | 'Unconfined' };
    };
  };
}

export interface ContainerMount {
  readonly containerPath: string;
  readonly hostPath: string;
  readonly readonly: boolean;
  readonly propagation: 'PROPAGATION_PRIVATE' | 'PROPAGATION_HOST_TO_CONTAINER' | 'PROPAGATION_BIDIRECTIONAL';
}

export interface PortMapping {
  readonly containerPort: number;
  readonly hostPort: number;
  /** @default TCP */
  readonly protocol?: 'TCP' | 'UDP' | 'SCTP';
  /** @default any address of the node */
  readonly hostIp?: string;
}

export interface PodSandboxStatus {
  readonly id: string;
  readonly state: 'SANDBOX_READY' | 'SANDBOX_NOTREADY';
  /** The first address of the CNI result and the others, as the pod's status shows them. */
  readonly network?: { readonly ip: string; readonly additionalIps: readonly { readonly ip: string }[] };
}

/** The calls by name: request and response, of runtime.proto. */
interface Calls {
  Version: [object, { readonly runtimeName: string; readonly runtimeVersion: string }];
  Status: [
    { readonly verbose?: boolean },
    {
      readonly status: { readonly conditions: readonly RuntimeCondition[] };
      readonly info: Readonly<Record<string, string>>;
    },
  ];
  RunPodSandbox: [{ readonly config: PodSandboxConfig }, { readonly podSandboxId: string }];
  StopPodSandbox: [{ readonly podSandboxId: string }, object];
  RemovePodSandbox: [{ readonly podSandboxId: string }, object];
  PodSandboxStatus: [
    { readonly podSandboxId: string; readonly verbose?: boolean },
    { readonly status: PodSandboxStatus; readonly info: Readonly<Record<string, string>> },
  ];
  ListPodSandbox: [object, { readonly items: readonly { readonly id: string }[] }];
  CreateContainer: [
    { readonly podSandboxId: string; readonly config: ContainerConfig; readonly sandboxConfig: PodSandboxConfig },
    { readonly containerId: string },
  ];
  StartContainer: [{ readonly containerId: string }, object];
  StopContainer: [{ readonly containerId: string; readonly timeout: number }, object];
  ContainerStatus: [
    { readonly containerId: string },
    {
      readonly status: {
        readonly state: 'CONTAINER_CREATED' | 'CONTAINER_RUNNING' | 'CONTAINER_EXITED' | 'CONTAINER_UNKNOWN';
        readonly exitCode: number;
      };
    },
  ];
  ExecSync: [
    { readonly containerId: string; readonly cmd: readonly string[]; readonly timeout: number },
    { readonly stdout: Buffer; readonly stderr: Buffer; readonly exitCode: number },
  ];
}

export interface RuntimeCondition {
  readonly type: string;
  readonly status: boolean;
  readonly reason: string;
  readonly message: string;
}

/** A kubelet's connection to a container runtime. */
export interface CriClient {
  /** Rejects with the runtime's words (a gRPC ServiceError), or when there is no answer within `timeoutMs` (@default 60,000). */
  call<Name extends keyof Calls>(
    name: Name,
    request: Calls[Name][0],
    options?: { readonly timeoutMs?: number },
  ): Promise<Calls[Name][1]>;
  close(): void;
}

const DEFINITION = loadSync(repositoryFile('test/cri/runtime.proto'), {
  enums: String,
  longs: Number,
  defaults: true,
});

type UnaryCall = (
  request: object,
  options: { readonly deadline: number },
  done: (error: ServiceError | null, response: object) => void,
) => void;

/** Connects to the runtime's Unix socket, now or as soon as there is one. */
export function connectCri(socketPath: string): CriClient {
  const { runtime } = loadPackageDefinition(DEFINITION) as unknown as {
    runtime: {
      v1: { RuntimeService: new (address: string, security: unknown) => Record<string, UnaryCall> & { close(): void } };
    };
  };
  const client = new runtime.v1.RuntimeService(`unix:${socketPath}`, credentials.createInsecure());
  return {
    call: (name, request, { timeoutMs = 60_000 } = {}) =>
      new Promise((resolve, reject) => {
        const done: Parameters<UnaryCall>[2] = (error, response) => {
          if (error) reject(new Error(`${name}: ${error.details || error.message}`, { cause: error }));
          else resolve(response as never);
        };
        client[name]!(request, { deadline: Date.now() + timeoutMs }, done);
      }),
    close: () => client.close(),
  };
}
