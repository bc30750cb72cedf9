import { readFileSync } from 'node:fs';
import type { RequestOptions } from 'node:https';
import { isAbsolute, join } from 'node:path';
import { parse } from 'yaml';
import { isMapping } from '../../../objects/field-reader.ts';

/** Where an API server is, and what it proves its identity with: `clusters[]` of a kubeconfig. Paths are absolute. */
export interface KubeCluster {
  readonly name: string;
  readonly server: string;
  /** Base64, as in the file. */
  readonly caData?: string | undefined;
  readonly caFile?: string | undefined;
  readonly skipTLSVerify: boolean;
  readonly tlsServerName?: string | undefined;
  readonly proxyUrl?: string | undefined;
}

/** Who asks: `users[]` of a kubeconfig. Paths are absolute. */
export interface KubeUser {
  readonly name: string;
  readonly certData?: string | undefined;
  readonly certFile?: string | undefined;
  readonly keyData?: string | undefined;
  readonly keyFile?: string | undefined;
  readonly token?: string | undefined;
  /** `tokenFile`, which kubeadm's kube-proxy configuration uses, or `token-file`. As in client-go it goes before `token`. */
  readonly tokenFile?: string | undefined;
  readonly username?: string | undefined;
  readonly password?: string | undefined;
  readonly impersonateUser?: string | undefined;
  /** A credential plugin, as it stands in the file. */
  readonly exec?: Readonly<Record<string, unknown>> | undefined;
  readonly authProvider?: Readonly<Record<string, unknown>> | undefined;
}

/** What the current context of a kubeconfig names. */
export interface KubeAccess {
  readonly cluster: KubeCluster | undefined;
  readonly user: KubeUser | undefined;
}

/**
 * Reads a kubeconfig.
 *
 * @param folder its own, to which the paths in it are relative
 * @throws an Error saying what is wrong: no YAML, or an entry without what makes it one
 */
export function readKubeconfig(text: string, folder: string): KubeAccess {
  const content: unknown = parse(text);
  const config = isMapping(content) ? content : {};
  const clusters = entriesOf(config, 'clusters', 'cluster').map(([name, entry], index) => {
    if (!textOf(entry, 'server')) throw new Error(`clusters[${index}].cluster.server is missing`);
    return clusterOf(name, entry, folder);
  });
  const users = entriesOf(config, 'users', 'user', true).map(([name, entry]) => userOf(name, entry, folder));
  const contexts = entriesOf(config, 'contexts', 'context');
  const current = contexts.find(([name]) => name === textOf(config, 'current-context'))?.[1];
  return {
    cluster: current && clusters.find(({ name }) => name === textOf(current, 'cluster')),
    user: current && users.find(({ name }) => name === textOf(current, 'user')),
  };
}

/**
 * TLS material, headers and basic authentication for one request. Files are read each time.
 *
 * @throws the error of a file
 */
export function directOptions(cluster: KubeCluster, user: KubeUser | undefined): RequestOptions {
  const { username, password, token, impersonateUser } = user ?? {};
  const ca = contentOf(cluster.caFile, cluster.caData);
  const cert = contentOf(user?.certFile, user?.certData);
  const key = contentOf(user?.keyFile, user?.keyData);
  return {
    ...(cluster.skipTLSVerify && { rejectUnauthorized: false }),
    ...(cluster.tlsServerName && { servername: cluster.tlsServerName }),
    ...(ca && { ca }),
    ...(cert && { cert }),
    ...(key && { key }),
    ...(username && { auth: `${username}:${password ?? ''}` }),
    headers: {
      ...(impersonateUser !== undefined && { 'Impersonate-User': impersonateUser }),
      ...(token && { Authorization: `Bearer ${token}` }),
    },
  };
}

type Mapping = Readonly<Record<string, unknown>>;

/** The named entries of a list: `clusters: [{ name: …, cluster: { … } }]`. */
function entriesOf(config: Mapping, list: string, member: string, mayBeEmpty = false): [name: string, Mapping][] {
  const entries = config[list];
  if (!Array.isArray(entries)) return [];
  return entries.map((entry: unknown, index) => {
    const name = isMapping(entry) ? textOf(entry, 'name') : undefined;
    if (!isMapping(entry) || !name) throw new Error(`${list}[${index}].name is missing`);
    const value = entry[member];
    if (!isMapping(value) && !mayBeEmpty) throw new Error(`${list}[${index}].${member} is missing`);
    return [name, isMapping(value) ? value : {}];
  });
}

function clusterOf(name: string, entry: Mapping, folder: string): KubeCluster {
  return {
    name,
    server: textOf(entry, 'server')!.replace(/\/$/, ''),
    caData: textOf(entry, 'certificate-authority-data'),
    caFile: pathOf(entry, 'certificate-authority', folder),
    skipTLSVerify: entry['insecure-skip-tls-verify'] === true,
    tlsServerName: textOf(entry, 'tls-server-name'),
    proxyUrl: textOf(entry, 'proxy-url'),
  };
}

function userOf(name: string, entry: Mapping, folder: string): KubeUser {
  const { exec, 'auth-provider': authProvider } = entry;
  return {
    name,
    certData: textOf(entry, 'client-certificate-data'),
    certFile: pathOf(entry, 'client-certificate', folder),
    keyData: textOf(entry, 'client-key-data'),
    keyFile: pathOf(entry, 'client-key', folder),
    token: textOf(entry, 'token'),
    tokenFile: pathOf(entry, 'tokenFile', folder) ?? pathOf(entry, 'token-file', folder),
    username: textOf(entry, 'username'),
    password: textOf(entry, 'password'),
    impersonateUser: textOf(entry, 'as'),
    exec: isMapping(exec) ? exec : undefined,
    authProvider: isMapping(authProvider) ? authProvider : undefined,
  };
}

/** A password of digits alone is a number in YAML. */
function textOf(entry: Mapping, field: string): string | undefined {
  const value = entry[field];
  if (typeof value === 'number') return String(value);
  return typeof value === 'string' && value !== '' ? value : undefined;
}

function pathOf(entry: Mapping, field: string, folder: string): string | undefined {
  const path = textOf(entry, field);
  return path === undefined || isAbsolute(path) ? path : join(folder, path);
}

function contentOf(file: string | undefined, base64: string | undefined): Buffer | undefined {
  if (file !== undefined) return readFileSync(file);
  return base64 === undefined ? undefined : Buffer.from(base64, 'base64');
}
