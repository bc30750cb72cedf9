import type { Environment } from '../protocol/environment.ts';
import type { NetworkHeader } from '../protocol/header.ts';
import type { CniResult } from '../protocol/result.ts';

/** One request of the protocol, as every verb gets it. */
export interface VerbRequest {
  readonly env: Environment;
  /** An open descriptor of the pod's namespace, if the caller has one. */
  readonly netns: number | undefined;
  readonly header: NetworkHeader;
  /** Takes warnings for people, also when the verb succeeds. */
  readonly warn: (message: string) => void;
}

/** Serves a verb. Returns the result to print; undefined prints nothing. Throws CniError, and errors of the layers below. */
export type Verb = (request: VerbRequest) => Promise<CniResult | undefined>;
