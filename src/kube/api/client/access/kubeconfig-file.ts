import type { RequestOptions } from 'node:https';
import { isAbsolute, join } from 'node:path';
import { parse } from 'yaml';
import { errorText, isMapping } from '../../../../core/index.ts';
import { describeValue } from '../../../objects/field-reader.ts';
import { misspeltFields } from './misspelt-fields.ts';
import { checkPem, misfitOf, type PemSource, readPem } from './pem.ts';

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
  readonly cluster: KubeCluster;
  /** Undefined: nobody is authenticated. */
  readonly user: KubeUser | undefined;
  /** The end of an error's message, see `misspeltFields`. */
  readonly misspelt: string;
}

/**
 * Reads a kubeconfig.
 *
 * @param folder its own, to which the paths in it are relative
 * @throws an Error saying what is wrong: no YAML, or an entry without what makes it one
 */
export function readKubeconfig(text: string, folder: string): KubeAccess {
  const content: unknown = parse(text);
  if (!isMapping(content))
    throw new Error(`it holds ${describeValue(content)} instead of clusters, users and contexts`);
  const misspelt = misspeltFields(content);
  try {
    return { ...accessOf(content, folder), misspelt };
  } catch (error) {
    throw new Error(`${errorText(error)}${misspelt}`);
  }
}

function accessOf(config: Mapping, folder: string): Omit<KubeAccess, 'misspelt'> {
  if (config.kind !== undefined && config.kind !== 'Config') {
    throw new Error(`kind is ${describeValue(config.kind)}, "Config" is needed; name the kubeconfig itself`);
  }
  const clusters = entriesOf(config, 'clusters', 'cluster').map(([name, entry], index) => {
    if (!textOf(entry, 'server')) {
      throw new Error(`clusters[${index}].cluster.server is missing; give the URL of the API server`);
    }
    return clusterOf(name, entry, folder);
  });
  const users = entriesOf(config, 'users', 'user', { mayBeEmpty: true }).map(([name, entry]) =>
    userOf(name, entry, folder),
  );
  const contexts = entriesOf(config, 'contexts', 'context');
  const [context, current] = entryNamed(contexts, ([name]) => name, textOf(config, 'current-context'), {
    field: 'current-context',
    list: 'contexts',
  });
  const within = `contexts "${context}": `;
  const cluster = entryNamed(clusters, ({ name }) => name, textOf(current, 'cluster'), {
    field: `${within}cluster`,
    list: 'clusters',
  });
  // Without a user nobody is authenticated, as in client-go; one that is named has to be there.
  const userName = textOf(current, 'user');
  const user =
    userName === undefined
      ? undefined
      : entryNamed(users, ({ name }) => name, userName, { field: `${within}user`, list: 'users' });
  checkCluster(cluster);
  if (user) checkUser(user);
  return { cluster, user };
}

/** The entry of a list that a field names. */
function entryNamed<T>(
  entries: readonly T[],
  nameOf: (entry: T) => string,
  wanted: string | undefined,
  { field, list }: { readonly field: string; readonly list: string },
): T {
  const found = entries.find((entry) => nameOf(entry) === wanted);
  if (found !== undefined) return found;
  const names = entries.map((entry) => `"${nameOf(entry)}"`).join(', ') || 'nothing';
  const what = wanted === undefined ? 'is missing' : `is "${wanted}", which is not there`;
  throw new Error(`${field} ${what}; name one of ${list}, which has ${names}`);
}

/** As in client-go, which refuses the same. */
function checkCluster(cluster: KubeCluster): void {
  checkPem(authorityOf(cluster));
  if (cluster.skipTLSVerify && (cluster.caFile !== undefined || cluster.caData !== undefined)) {
    throw new Error(
      `clusters "${cluster.name}": insecure-skip-tls-verify and certificate-authority are both given; take the first out`,
    );
  }
}

function checkUser(user: KubeUser): void {
  const [cert, key] = [certificateOf(user), keyOf(user)];
  for (const source of [cert, key]) checkPem(source);
  const isGiven = ({ file, base64 }: PemSource) => file !== undefined || base64 !== undefined;
  if (isGiven(cert) !== isGiven(key)) {
    const [given, lacking] = isGiven(cert) ? [cert, key] : [key, cert];
    throw new Error(`users "${user.name}": ${given.field} is given without ${lacking.field}; give both`);
  }
  if (cert.base64 === undefined || key.base64 === undefined) return;
  const misfit = misfitOf(readPem(cert)!, readPem(key)!);
  if (misfit !== undefined) throw new Error(`users "${user.name}": ${misfit}`);
}

function authorityOf({ caFile, caData }: KubeCluster): PemSource {
  return { field: 'certificate-authority', file: caFile, base64: caData };
}

function certificateOf({ certFile, certData }: KubeUser): PemSource {
  return { field: 'client-certificate', file: certFile, base64: certData };
}

function keyOf({ keyFile, keyData }: KubeUser): PemSource {
  return { field: 'client-key', file: keyFile, base64: keyData };
}

/**
 * TLS material, headers and basic authentication for one request. Files are read each time.
 *
 * @throws the error of a file
 */
export function directOptions(cluster: KubeCluster, user: KubeUser | undefined): RequestOptions {
  const { username, password, token, impersonateUser } = user ?? {};
  const ca = readPem(authorityOf(cluster));
  const cert = user && readPem(certificateOf(user));
  const key = user && readPem(keyOf(user));
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
function entriesOf(
  config: Mapping,
  list: string,
  member: string,
  { mayBeEmpty = false }: { readonly mayBeEmpty?: boolean } = {},
): [name: string, Mapping][] {
  const entries = config[list];
  if (entries === undefined || entries === null) return [];
  if (!Array.isArray(entries)) throw new Error(`${list} is ${describeValue(entries)}; write a list`);
  return entries.map((entry: unknown, index) => {
    const name = isMapping(entry) ? textOf(entry, 'name') : undefined;
    if (!isMapping(entry) || !name) throw new Error(`${list}[${index}].name is missing; name the entry`);
    const value = entry[member];
    if (!isMapping(value) && !mayBeEmpty)
      throw new Error(`${list}[${index}].${member} is missing; write it below the name`);
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
