import { existsSync } from 'node:fs';
import type { RequestOptions } from 'node:https';
import { dirname, isAbsolute, join } from 'node:path';
import { errorText, isMapping, NodeplaneError, readGivenFile, withPort } from '../../../../core/index.ts';
import { type CredentialPlugin, type ExecCredential, readPlugin } from './exec-credential.ts';
import { directOptions, type KubeCluster, type KubeUser, readKubeconfig } from './kubeconfig-file.ts';
import { type Environment, proxyOf } from './proxy-environment.ts';

/** What decides where the API server is, and how to log in there. */
export interface ApiServerLocation {
  /** Path of a kubeconfig file (--kubeconfig). */
  readonly kubeconfig?: string;
  /** Overrides the server of the kubeconfig (--master). */
  readonly master?: string;
  /**
   * Where NODEPLANE_API_SERVER, KUBERNETES_SERVICE_HOST and _PORT are looked up when neither of the above is given, and the proxies
   * in any case. @default process.env
   */
  readonly env?: Environment;
  /** The kubeconfig that kubeadm mounts into kube-proxy's pods. @default /var/lib/kube-proxy/kubeconfig.conf */
  readonly kubeadmKubeconfig?: string;
  /** @default /var/run/secrets/kubernetes.io/serviceaccount */
  readonly serviceAccountFolder?: string;
}

/** Makes what runs the credential plugin of a kubeconfig. */
export type MakeExecCredential = (plugin: CredentialPlugin) => Pick<ExecCredential, 'get'>;

/** Where the API server is and how to prove who we are. */
export interface ServerAccess {
  readonly server: URL;
  /** Where that is written, in words. */
  readonly source: string;
  /** What the kubeconfig held; empty: there is none. */
  readonly text: string;
  /** Fields there that nobody reads and what was probably meant, as the end of an error's message; empty: nothing of the kind. */
  readonly misspelt: string;
  /** The proxy on the way there, without its password; undefined: there is none. */
  readonly proxy: string | undefined;
  /**
   * TLS material, headers and basic authentication for one request; an agent only if there is a proxy on the way.
   * Files are read each time and plugins asked when what they said has expired, so that renewed certificates and tokens are
   * picked up. Rejects with the error of the file or plugin, also when `signal` aborts.
   */
  requestOptions(signal: AbortSignal): Promise<RequestOptions>;
}

const KUBEADM_KUBECONFIG = '/var/lib/kube-proxy/kubeconfig.conf';
const SERVICE_ACCOUNT_FOLDER = '/var/run/secrets/kubernetes.io/serviceaccount';

/**
 * Reads the configuration anew: from the kubeconfig, with `master` alone without any authentication, as client-go's
 * BuildConfigFromFlags does. Without either, client-go takes the pod's service account and the address in its environment,
 * which is a ClusterIP: on a node that has just booted nobody leads there but ourselves, once we know how. So that comes last, behind
 * NODEPLANE_API_SERVER (with the service account as well) and the kubeconfig that kubeadm gives kube-proxy. Throws ERR_CONFIG.
 */
export function loadServerAccess(location: ApiServerLocation, execCredential: MakeExecCredential): ServerAccess {
  const { kubeconfig, master, env = process.env, kubeadmKubeconfig = KUBEADM_KUBECONFIG } = location;
  const fromFile = (path: string) => fromKubeconfig(path, master, env, execCredential);
  if (kubeconfig) return fromFile(kubeconfig);
  if (master) return access(clusterAt(withScheme(master)), { source: '--master', env });
  if (env.NODEPLANE_API_SERVER) {
    return fromServiceAccount(withScheme(env.NODEPLANE_API_SERVER, 'https'), 'NODEPLANE_API_SERVER', location);
  }
  if (existsSync(kubeadmKubeconfig)) return fromFile(kubeadmKubeconfig);
  return fromServiceAccount(clusterIpServer(env), 'the pod’s environment', location);
}

function fromKubeconfig(
  path: string,
  master: string | undefined,
  env: Environment,
  execCredential: MakeExecCredential,
): ServerAccess {
  const source = `the kubeconfig "${path}"`;
  let text: string;
  let named: KubeCluster;
  let user: KubeUser | undefined;
  let misspelt: string;
  let plugin: CredentialPlugin | undefined;
  try {
    text = readText(path);
    ({ cluster: named, user, misspelt } = readKubeconfig(text, dirname(path)));
    if (user?.exec) plugin = completePlugin(readPlugin(user.exec), path);
    refuseForeignPrograms(user?.authProvider);
  } catch (error) {
    throw new NodeplaneError('ERR_CONFIG', `Cannot read the kubeconfig "${path}"`, { cause: error });
  }
  const cluster = master ? { ...named, server: withScheme(master) } : named;
  return access(cluster, { user, credential: plugin && execCredential(plugin), env, source, text, misspelt });
}

function readText(path: string): string {
  try {
    return readGivenFile(path).toString('utf8');
  } catch (error) {
    throw new Error(`${errorText(error)}; name one that is there, or mount it`);
  }
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

/** The address that the kubelet puts into each pod. */
function clusterIpServer({ KUBERNETES_SERVICE_HOST: host, KUBERNETES_SERVICE_PORT: port }: Environment): string {
  if (!host || !port) {
    const message =
      'Cannot find the API server: neither a kubeconfig nor a master URL is given, and KUBERNETES_SERVICE_HOST and ' +
      'KUBERNETES_SERVICE_PORT are not set; give --kubeconfig, or run in a pod';
    throw new NodeplaneError('ERR_CONFIG', message);
  }
  return `https://${withPort(host, port)}`;
}

function fromServiceAccount(
  server: string,
  source: string,
  { env = process.env, serviceAccountFolder = SERVICE_ACCOUNT_FOLDER }: ApiServerLocation,
): ServerAccess {
  const cluster = { ...clusterAt(server), caFile: join(serviceAccountFolder, 'ca.crt') };
  const user = { name: 'service account', tokenFile: join(serviceAccountFolder, 'token') };
  return access(cluster, { user, env, source });
}

function clusterAt(server: string): KubeCluster {
  return { name: 'cluster', server, skipTLSVerify: false };
}

/** Who asks, and from where. */
interface Asker {
  /** @default nobody: without any authentication */
  readonly user?: KubeUser | undefined;
  readonly credential?: Pick<ExecCredential, 'get'> | undefined;
  /** Where it all comes from, in words. */
  readonly source: string;
  /** As in `ServerAccess`. @default there is no kubeconfig */
  readonly text?: string;
  /** Names the proxies. */
  readonly env: Environment;
  /** See `misspeltFields`. @default nothing */
  readonly misspelt?: string;
}

function access(named: KubeCluster, { user, credential, source, env, text = '', misspelt = '' }: Asker): ServerAccess {
  const server = serverUrl(named.server, source);
  const proxy = named.proxyUrl || proxyOf(server, env);
  // Of plain HTTP there is nothing to verify, and client-node wants to hear so.
  const skipTLSVerify = named.skipTLSVerify || server.protocol === 'http:';
  const cluster: KubeCluster = { ...named, skipTLSVerify, proxyUrl: proxy };
  return {
    server,
    source,
    text,
    misspelt,
    proxy: proxy && withoutPassword(proxy),
    async requestOptions(signal) {
      const direct = !proxy && !user?.authProvider;
      const options = direct ? directOptions(cluster, user) : await indirectOptions(cluster, user);
      const { agent, headers = {}, ...rest } = options;
      if (credential) {
        const { token, cert, key } = await credential.get(signal);
        if (token !== undefined) Object.assign(headers, { Authorization: `Bearer ${token}` });
        if (cert !== undefined) Object.assign(rest, { cert, key });
      }
      if (user?.tokenFile !== undefined) {
        Object.assign(headers, { Authorization: `Bearer ${readToken(user.tokenFile)}` });
      }
      return { ...rest, headers, ...(proxy && agent && { agent }) };
    },
  };
}

async function indirectOptions(cluster: KubeCluster, user: KubeUser | undefined): Promise<RequestOptions> {
  const { clientNodeOptions } = await import('./client-node-options.ts');
  return clientNodeOptions(cluster, user);
}

function serverUrl(text: string, source: string): URL {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url?.protocol === 'https:' || url?.protocol === 'http:') return url;
  throw new NodeplaneError(
    'ERR_CONFIG',
    `Cannot use ${source}: "${text}" is not the http or https URL of an API server; write ${urlLike(text)}`,
  );
}

/** What was probably meant by an address without a scheme, else an example. */
function urlLike(text: string): string {
  const isAddress = /^[\w.[\]:-]+$/.test(text) && URL.canParse(`https://${text}`);
  return `"https://${isAddress ? text : '192.0.2.1:6443'}"`;
}

/** @throws an Error that names the file and the remedy */
function readToken(file: string): string {
  let token: string;
  try {
    token = readGivenFile(file).toString('utf8').trim();
  } catch (error) {
    throw new Error(`tokenFile "${file}" cannot be read (${errorText(error)}); correct the path, or mount the file`);
  }
  if (token === '') throw new Error(`tokenFile "${file}" is empty; write the token there, or name another file`);
  return token;
}

/** client-go takes a server without a scheme for plain HTTP. */
function withScheme(server: string, scheme: 'http' | 'https' = 'http'): string {
  return server.includes('://') ? server : `${scheme}://${server}`;
}

function withoutPassword(proxy: string): string {
  if (!URL.canParse(proxy)) return 'one whose URL cannot be read';
  const { protocol, host } = new URL(proxy);
  return `${protocol}//${host}`;
}
