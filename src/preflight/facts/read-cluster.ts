import type { KubeProxyConfig } from '../../config/index.ts';
import { compareText, errorText, NodeplaneError, systemClock } from '../../core/index.ts';
import {
  type ApiClient,
  ApiStatusError,
  ENDPOINT_SLICES,
  type Node,
  nodeNamed,
  type ObjectSource,
  type Resource,
  readOnce,
  SERVICE_CIDRS,
  SERVICES,
  type Service,
  wholeBody,
} from '../../kube/index.ts';
import { isForProxy } from '../../proxy/index.ts';
import type { ClusterFacts, ClusterOrigin } from './cluster-facts.ts';

/** How the cluster is reached. */
export interface ClusterAccess {
  readonly config: KubeProxyConfig;
  /** Undefined where the objects come from manifests; an error where nothing leads to an API server. */
  readonly client: ApiClient | Error | undefined;
  /** Makes the source of these. */
  readonly source: (resources: readonly Resource[]) => ObjectSource;
  /** Of everything the cluster is asked. */
  readonly patienceMs: number;
}

/** An answer to a single question is far smaller; a ConfigMap has 1 MiB at most. */
const LONGEST_ANSWER = 2 * 1024 * 1024;

/** The facts of the cluster; nothing is asked before somebody wants to know. */
export function readCluster(access: ClusterAccess): ClusterFacts {
  const { config, client, source, patienceMs } = access;
  const api = () => {
    if (client === undefined || client instanceof Error) throw new Error('there is no API server to ask');
    return client;
  };
  let objects: ReturnType<ClusterFacts['objects']> | undefined;
  let server: ReturnType<ClusterFacts['server']> | undefined;
  const readObjects: ClusterFacts['objects'] = async () => {
    const resources = [
      { ...nodeNamed(config.nodeName), essential: true },
      { ...SERVICES, essential: true },
      // Of files it costs nothing, and mistakes are to be found before an agent reads them.
      ...(config.manifests === '' ? [] : [SERVICE_CIDRS, ENDPOINT_SLICES]),
    ];
    const { objects: all, problems, doubts } = await readOnce(source(resources), 'Services and the Node', patienceMs);
    return {
      node: all.find((one): one is Node => one.kind === 'Node' && one.metadata.name === config.nodeName),
      services: all
        .filter((one): one is Service => one.kind === 'Service' && isForProxy(one, config.serviceProxyName))
        .sort((a, b) => compareText(nameOf(a), nameOf(b))),
      problems,
      doubts,
    };
  };
  const readServer: ClusterFacts['server'] = async () => {
    const { text, date, askedAt, answeredAt } = await ask(api(), '/version', patienceMs);
    const { gitVersion } = JSON.parse(text) as { gitVersion?: unknown };
    const told = date === undefined ? Number.NaN : Date.parse(date);
    return {
      version: typeof gitVersion === 'string' ? gitVersion : 'of an unknown version',
      aheadSeconds: Number.isNaN(told) ? undefined : Math.round(((askedAt + answeredAt) / 2 - told) / 1000),
    };
  };
  return {
    origin: originOf(access),
    objects: () => {
      objects ??= readObjects();
      return objects;
    },
    server: () => {
      server ??= readServer();
      return server;
    },
    async kubeadmConfig() {
      try {
        const path = '/api/v1/namespaces/kube-system/configmaps/kubeadm-config';
        const { text } = await ask(api(), path, patienceMs);
        const { data } = JSON.parse(text) as { data?: { ClusterConfiguration?: unknown } };
        return String(data?.ClusterConfiguration ?? '');
      } catch (error) {
        if (error instanceof ApiStatusError && error.status === 404) return undefined;
        throw error;
      }
    },
  };
}

function originOf({ config, client }: ClusterAccess): ClusterOrigin {
  if (config.manifests !== '') return { kind: 'manifests', folder: config.manifests };
  if (client === undefined || client instanceof Error) {
    return { kind: 'none', reason: client ? errorText(client) : 'no API server is named' };
  }
  const { kubeconfig, master } = config.apiServer;
  const by = master !== '' ? '--master' : kubeconfig !== '' ? '--kubeconfig' : 'environment';
  const { server } = client;
  return { kind: 'api', server: server.origin, host: server.hostname.replace(/^\[(.*)\]$/, '$1'), by };
}

async function ask(client: ApiClient, path: string, patienceMs: number) {
  const signal = AbortSignal.timeout(patienceMs);
  try {
    return await read(client, path, signal);
  } catch (error) {
    if (!signal.aborted) throw error;
    throw new NodeplaneError('ERR_API', `GET ${path}: no answer within ${patienceMs / 1000} s`, { cause: error });
  }
}

async function read(client: ApiClient, path: string, signal: AbortSignal) {
  const askedAt = systemClock.wallTime();
  const { body, date } = await client.send({ method: 'GET', path, signal });
  const answeredAt = systemClock.wallTime();
  const bytes = await wholeBody(body, LONGEST_ANSWER, () => {
    return new NodeplaneError('ERR_API', `GET ${path}: the answer is longer than ${LONGEST_ANSWER} bytes`);
  });
  return { text: bytes.toString('utf8'), date, askedAt, answeredAt };
}

function nameOf({ metadata: { namespace, name } }: Service): string {
  return `${namespace}/${name}`;
}
