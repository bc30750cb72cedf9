import { type ChildProcess, spawn } from 'node:child_process';
import type { TestNamespace } from '../namespace.ts';
import { builtProgram } from '../programs.ts';

/** One call of a plugin by a runtime. */
export interface PluginCall {
  readonly command: string;
  readonly containerId?: string;
  /** A namespace, or the text of CNI_NETNS. */
  readonly netns?: TestNamespace | string;
  readonly ifname?: string;
  /** An object, or the text for stdin. */
  readonly config: object | string;
  /** Variables to change; undefined takes one away. */
  readonly env?: Readonly<Record<string, string | undefined>>;
  /** @default the built nodeplane-cni */
  readonly program?: string;
  readonly args?: readonly string[];
  readonly cwd?: string;
}

/** How it ended. */
export interface PluginOutcome {
  readonly status: number | null;
  readonly stdout: string;
  readonly stderr: string;
  /** stdout as JSON; undefined when it is empty. */
  readonly json: PluginJson | undefined;
}

/** The keys of results and errors that tests look at. */
export interface PluginJson {
  readonly cniVersion: string;
  readonly code?: number;
  readonly msg?: string;
  readonly details?: string;
  readonly interfaces?: readonly { name: string; mac: string; mtu?: number; sandbox?: string }[];
  readonly ips?: readonly { version?: string; interface?: number; address: string; gateway: string }[];
  readonly routes?: readonly { dst: string; gw?: string }[];
  readonly dns?: object;
}

/** Starts a plugin inside `node`, which is to it the host. */
export function startPlugin(
  node: TestNamespace,
  call: PluginCall,
): { readonly child: ChildProcess; readonly outcome: Promise<PluginOutcome> } {
  const { netns } = call;
  const variables = {
    PATH: process.env.PATH,
    CNI_COMMAND: call.command,
    CNI_CONTAINERID: call.containerId ?? 'container-1',
    CNI_NETNS: typeof netns === 'object' ? netns.path : netns,
    CNI_IFNAME: call.ifname ?? 'eth0',
    CNI_PATH: '/opt/cni/bin',
    ...call.env,
  };
  const env = Object.fromEntries(Object.entries(variables).filter(([, value]) => value !== undefined));
  const program = call.program ?? builtProgram('nodeplane-cni');
  const child = spawn('ip', ['netns', 'exec', node.name, program, ...(call.args ?? [])], {
    env: env as NodeJS.ProcessEnv,
    cwd: call.cwd,
    stdio: 'pipe',
  });
  const outcome = new Promise<PluginOutcome>((resolve, reject) => {
    let stdout = '';
    let stderr = '';
    child.stdout.on('data', (chunk) => {
      stdout += chunk;
    });
    child.stderr.on('data', (chunk) => {
      stderr += chunk;
    });
    child.stdin.on('error', () => {});
    child.on('error', reject);
    child.on('close', (status) => {
      try {
        resolve({ status, stdout, stderr, json: stdout === '' ? undefined : JSON.parse(stdout) });
      } catch {
        reject(new Error(`${program} printed no JSON: ${stdout}${stderr}`));
      }
    });
  });
  child.stdin.end(typeof call.config === 'string' ? call.config : JSON.stringify(call.config));
  return { child, outcome };
}

export function callPlugin(node: TestNamespace, call: PluginCall): Promise<PluginOutcome> {
  return startPlugin(node, call).outcome;
}
