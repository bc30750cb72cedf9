import { readFileSync } from 'node:fs';
import type { RequestOptions } from 'node:https';
import { isIPv6 } from 'node:net';
import { dirname, isAbsolute, join } from 'node:path';
import { KubeConfig } from '@kubernetes/client-node';
import { parse } from 'yaml';
import { NodeplaneError } from '../../../core/index.ts';
import { isMapping } from '../../objects/field-reader.ts';
import { type CredentialPlugin, type ExecCredential, readPlugin } from './exec-credential.ts';

// The only file that imports @kubernetes/client-node, and itself imported only when an API server is to be used: the
// package costs 60 ms of start and 25 MB of memory. It reads kubeconfigs; requests are made by http-client.ts. Programs are
// run by exec-credential.ts: the package would wait for them without end.

export interface ApiServerLocation {
  /** Path of a kubeconfig file (--kubeconfig). */
  readonly kubeconfig?: string;
  /** Overrides the server of the kubeconfig (--master). */
  readonly master?: string;
  /** Where KUBERNETES_SERVICE_HOST and _PORT are looked up when neither of the above is given. @default process.env */
  readonly env?: Readonly<Record<string, string | undefined>>;
  /** @default /var/run/secrets/kubernetes.io/serviceaccount */
  readonly serviceAccountFolder?: string;
}

/** Makes what runs the credential plugin of a kubeconfig. */
export type MakeExecCredential = (plugin: CredentialPlugin) => Pick<ExecCredential, 'get'>;

/** Where the API server is and how to prove who we are. */
export interface ServerAccess {
  readonly server: URL;
  /**
   * TLS material, headers and basic authentication for one request; an agent only if the kubeconfig names a proxy.
   * Files are read each time and plugins asked when what they said has expired, so that renewed certificates and tokens are
   * picked up. Rejects with the error of the file or plugin, also when `signal` aborts.
   */
  requestOptions(signal: AbortSignal): Promise<RequestOptions>;
}

const SERVICE_ACCOUNT_FOLDER = '/var/run/secrets/kubernetes.io/serviceaccount';

/**
 * Reads the configuration anew: from the kubeconfig, with `master` alone without any authentication, else from the
 * pod's service account, as client-go's BuildConfigFromFlags does. Throws ERR_CONFIG.
 */
export function loadServerAccess(location: ApiServerLocation, execCredential: MakeExecCredential): ServerAccess {
  const { kubeconfig, master } = location;
  if (kubeconfig) return fromKubeconfig(kubeconfig, master, execCredential);
  if (master) return access(configFor({ server: withScheme(master) }), {}, '--master');
  return fromServiceAccount(location);
}

function fromKubeconfig(path: string, master: string | undefined, execCredential: MakeExecCredential): ServerAccess {
  const config = new KubeConfig();
  let tokenFile: string | undefined;
  let plugin: CredentialPlugin | undefined;
  try {
    const text = readFileSync(path, 'utf8');
    config.loadFromString(text);
    config.makePathsAbsolute(dirname(path));
    tokenFile = tokenFileOf(text, config.getContextObject(config.currentContext)?.user, dirname(path));
    const user = config.getCurrentUser();
    if (user?.exec) plugin = completePlugin(readPlugin(user.exec), path);
    refuseForeignPrograms(user?.authProvider);
  } catch (error) {
    throw new NodeplaneError('ERR_CONFIG', `Cannot read the kubeconfig "${path}"`, { cause: error });
  }
  if (master) {
    config.clusters = config.clusters.map((cluster) => ({ ...cluster, server: withScheme(master) }));
  }
  config.users = config.users.map(({ exec: _, ...user }) => user);
  const credential = plugin && execCredential(plugin);
  return access(config, { tokenFile, credential }, `the kubeconfig "${path}"`);
}

/**
 * `users[].user.tokenFile`, which kubeadm's kube-proxy configuration uses and KubeConfig does not know. As in client-go it
 * goes before `token`.
 */
function tokenFileOf(kubeconfig: string, userName: string | undefined, folder: string): string | undefined {
  const content: unknown = parse(kubeconfig);
  const users = isMapping(content) && Array.isArray(content.users) ? content.users : [];
  const user = users.find((entry) => isMapping(entry) && entry.name === userName)?.user;
  const file = isMapping(user) ? user.tokenFile : undefined;
  if (typeof file !== 'string' || file === '') return undefined;
  return isAbsolute(file) ? file : join(folder, file);
}

/** What an exec plugin may rely on (client.authentication.k8s.io). */
function completePlugin(plugin: CredentialPlugin, kubeconfig: string): CredentialPlugin {
  const { apiVersion, command, env } = plugin;
  const info = JSON.stringify({ apiVersion, kind: 'ExecCredential', spec: { interactive: false } });
  const isRelative = command.includes('/') && !isAbsolute(command);
  return {
    ...plugin,
    command: isRelative ? join(dirname(kubeconfig), command) : command,
    env: { ...env, KUBERNETES_EXEC_INFO: info },
  };
}

/** Those that run a program, as long as it likes and with everything else waiting; Kubernetes 1.26 has taken them away. */
function refuseForeignPrograms(authProvider: unknown): void {
  const name = isMapping(authProvider) ? authProvider.name : undefined;
  if (name === 'gcp' || name === 'azure' || name === 'exec') {
    throw new Error(`auth-provider "${name}" is gone since Kubernetes 1.26; use an exec plugin`);
  }
}

function fromServiceAccount({ env = process.env, serviceAccountFolder }: ApiServerLocation): ServerAccess {
  const { KUBERNETES_SERVICE_HOST: host, KUBERNETES_SERVICE_PORT: port } = env;
  if (!host || !port) {
    const message =
      'Cannot find the API server: neither a kubeconfig nor a master URL is given, and KUBERNETES_SERVICE_HOST and ' +
      'KUBERNETES_SERVICE_PORT are not set; give --kubeconfig, or run in a pod';
    throw new NodeplaneError('ERR_CONFIG', message);
  }
  const folder = serviceAccountFolder ?? SERVICE_ACCOUNT_FOLDER;
  const server = `https://${isIPv6(host) ? `[${host}]` : host}:${port}`;
  const config = configFor({ server, caFile: join(folder, 'ca.crt') });
  return access(config, { tokenFile: join(folder, 'token') }, 'the pod’s environment');
}

function configFor(cluster: { readonly server: string; readonly caFile?: string }): KubeConfig {
  const config = new KubeConfig();
  config.loadFromClusterAndUser({ name: 'cluster', skipTLSVerify: false, ...cluster }, { name: 'user' });
  return config;
}

/** What KubeConfig leaves out of a user. */
interface FurtherCredentials {
  readonly tokenFile?: string | undefined;
  readonly credential?: Pick<ExecCredential, 'get'> | undefined;
}

function access(config: KubeConfig, { tokenFile, credential }: FurtherCredentials, source: string): ServerAccess {
  const cluster = config.getCurrentCluster();
  if (!cluster) {
    throw new NodeplaneError('ERR_CONFIG', `Cannot use ${source}: its current context names no cluster`);
  }
  const server = serverUrl(cluster.server, source);
  if (server.protocol === 'http:') {
    // KubeConfig refuses plain HTTP unless certificates are not to be verified; there are none.
    config.clusters = config.clusters.map((entry) => ({ ...entry, skipTLSVerify: true }));
  }
  return {
    server,
    async requestOptions(signal) {
      const options: RequestOptions = {};
      await config.applyToHTTPSOptions(options);
      const { agent, headers = {}, ...rest } = options;
      if (credential) {
        const { token, cert, key } = await credential.get(signal);
        if (token !== undefined) Object.assign(headers, { Authorization: `Bearer ${token}` });
        if (cert !== undefined) Object.assign(rest, { cert, key });
      }
      if (tokenFile !== undefined) {
        Object.assign(headers, { Authorization: `Bearer ${readFileSync(tokenFile, 'utf8').trim()}` });
      }
      return { ...rest, headers, ...(cluster.proxyUrl && agent && { agent }) };
    },
  };
}

function serverUrl(text: string, source: string): URL {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url?.protocol === 'https:' || url?.protocol === 'http:') return url;
  throw new NodeplaneError(
    'ERR_CONFIG',
    `Cannot use ${source}: "${text}" is not the http or https URL of an API server`,
  );
}

/** client-go takes a server without a scheme for plain HTTP. */
function withScheme(server: string): string {
  return server.includes('://') ? server : `http://${server}`;
}
