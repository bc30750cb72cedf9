import type { Node, Service } from '../../kube/index.ts';

/** Where the cluster's objects come from. */
export type ClusterOrigin =
  | { readonly kind: 'manifests'; readonly folder: string }
  | {
      readonly kind: 'api';
      /** As it is reached: `https://10.0.0.1:6443`. */
      readonly server: string;
      readonly host: string;
      /** What named it. */
      readonly by: '--master' | '--kubeconfig' | 'environment';
    }
  /** Nothing was given that leads to a cluster. */
  | { readonly kind: 'none'; readonly reason: string };

/** The objects that matter to this node. */
export interface ClusterObjects {
  /** Undefined: there is none of the node's name. */
  readonly node: Node | undefined;
  /** Those that this proxy serves, by name. */
  readonly services: readonly Service[];
  /** Objects that cannot be read, in words. */
  readonly problems: readonly string[];
  /** What of the others is probably not meant, in words. */
  readonly doubts: readonly string[];
}

/** What the API server says about itself. */
export interface ServerFacts {
  /** `v1.36.2` */
  readonly version: string;
  /** How far this node's clock is ahead of the server's, in seconds; undefined: it named no time. */
  readonly aheadSeconds: number | undefined;
}

/** What the cluster tells. Everything but `origin` rejects with ERR_API when it cannot be read in time. */
export interface ClusterFacts {
  readonly origin: ClusterOrigin;
  objects(): Promise<ClusterObjects>;
  server(): Promise<ServerFacts>;
  /** Key ClusterConfiguration of ConfigMap kube-system/kubeadm-config; undefined: there is no such ConfigMap. */
  kubeadmConfig(): Promise<string | undefined>;
}
