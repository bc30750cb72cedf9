import type { Registry } from 'prom-client';
import type { IpFamily } from '../../../core/index.ts';
import type { Dataplane, ProxyMode } from '../../../proxy/index.ts';

/** A way to make Services work that was looked at and can be used on this machine. Nothing is written yet. */
export interface PreparedMode {
  readonly mode: ProxyMode;
  /** Those that can be served; at least one. */
  readonly families: readonly IpFamily[];
  /** Why a family of this machine cannot be served. */
  readonly unserved: ReadonlyMap<IpFamily, string>;
  /** Sets up what the families share, with the metrics only this mode has, and returns the maker of their dataplanes. */
  begin(registry: Registry): (family: IpFamily, hooks: DataplaneHooks) => Dataplane;
}

/** What a dataplane tells besides the outcome of its commits. */
export interface DataplaneHooks {
  /** The kernel reports that somebody else changed what is ours: it has to be looked at now. */
  readonly changedByOthers: () => void;
}
