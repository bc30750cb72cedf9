import { mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { KINDS, type KubeObject } from '../../../src/kube/index.ts';
import { enterNetns } from '../../../src/sys/index.ts';
import { FakeApiServer } from '../../fakes/api-server/index.ts';
import { manifestOf, saveManifest } from '../../samples/manifests.ts';
import type { AgentOptions, Lab } from '../lab.ts';

/** Where the agents of a cluster read its objects. */
export interface ClusterObjects {
  /** What an agent is started with to read them. */
  readonly agentOptions: Pick<AgentOptions, 'manifests' | 'flags'>;
  /** Creates or replaces an object. */
  put(object: KubeObject): void;
  delete(object: KubeObject): void;
}

/** A directory of manifests that all nodes share, one file an object. */
export function manifestObjects(folder: string): ClusterObjects {
  mkdirSync(folder);
  const fileOf = ({ kind, metadata }: KubeObject) => `${kind}-${metadata.namespace}-${metadata.name}.yaml`;
  return {
    agentOptions: { manifests: folder },
    put: (object) => saveManifest(folder, fileOf(object), manifestOf(object)),
    delete: (object) => rmSync(join(folder, fileOf(object))),
  };
}

/**
 * An API server on the lab's wire, which every node reaches through its default gateway.
 *
 * The calling thread enters the wire's namespace for good: the server is run by it.
 */
export async function apiServerObjects(lab: Lab): Promise<ClusterObjects & { readonly api: FakeApiServer }> {
  const { namespace, gateways } = lab.wire;
  enterNetns(namespace.path);
  const api = new FakeApiServer({ address: gateways[0]! });
  await api.start();
  const kubeconfig = join(lab.folder, 'kubeconfig');
  api.writeKubeconfig(kubeconfig);
  const keyOf = ({ metadata: { namespace: of, name } }: KubeObject) => (of === '' ? name : `${of}/${name}`);
  return {
    api,
    agentOptions: { flags: ['--kubeconfig', kubeconfig] },
    put({ metadata: { namespace: of, ...metadata }, ...object }) {
      const { apiVersion } = KINDS[object.kind];
      api.apply({ apiVersion, ...object, metadata: of === '' ? metadata : { ...metadata, namespace: of } });
    },
    delete: (object) => void api.delete(object.kind, keyOf(object)),
  };
}
