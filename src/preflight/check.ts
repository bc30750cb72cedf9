import type { KubeProxyConfig } from '../config/index.ts';
import type { ProxyMode } from '../proxy/index.ts';
import type { ClusterFacts } from './facts/cluster-facts.ts';
import type { NodeFacts } from './facts/node-facts.ts';
import type { Outcome } from './finding.ts';

/** What checks look at. Each fact is found when somebody asks for it first; one that cannot be found throws, each time. */
export interface World {
  /** What the agent is going to run with. */
  readonly config: KubeProxyConfig;
  /** What the agent is going to warn of at its start about flags and file: options without effect, and the like. */
  readonly warnings: readonly string[];
  readonly node: NodeFacts;
  readonly cluster: ClusterFacts;
  /** Name of the CNI configuration that the agent installs. */
  readonly conflistFile: string;
  /** The type of the agent's plugin in configurations. */
  readonly pluginType: string;
  /** The mode in which Services work until now. @default told by the rules that are there */
  readonly presentMode?: ProxyMode | undefined;
}

/** One question, and one line of the report. */
export interface Check {
  /** Stable: programs and runbooks know it. docs/preflight.md explains each. */
  readonly name: string;
  /** Changes nothing. What it throws makes the line `cannot tell`. */
  look(world: World): Outcome | Promise<Outcome>;
}
