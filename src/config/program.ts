/**
 * Whose command line it is: that of the drop-in replacement, which knows what kube-proxy knows, or that of `nodeplane agent`,
 * which knows our own settings too.
 */
export type Program = 'kube-proxy' | 'nodeplane agent';

/** The release of kube-proxy that this one behaves like: flags, file, metrics, rules. */
export const KUBERNETES_VERSION = 'v1.36.2';
