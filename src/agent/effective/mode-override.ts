import type { KubeProxyConfig } from '../../config/index.ts';
import { type Node, PROXY_MODE_ANNOTATION } from '../../kube/index.ts';
import type { Logger } from '../logger.ts';

export interface ModeOverrideOptions {
  /** As flags and file say. */
  readonly configured: KubeProxyConfig;
  /** The same in another mode, or why there is none, in words. */
  readonly inMode: (mode: string) => KubeProxyConfig | string;
  readonly logger: Logger;
}

/** What the own Node means for the agent. */
export type Verdict =
  /** The agent has to begin anew, with `config` as it is now. */
  | { readonly kind: 'restart' }
  /** The annotation is nonsense; it is as if it were not there. */
  | { readonly kind: 'problem'; readonly text: string }
  | undefined;

/** More of a value that somebody wrote is not repeated. */
const SHOWN_CHARACTERS = 40;

/**
 * The configuration in force: the configured one, or the same in the mode that an annotation of the own Node names, so that a
 * change of mode can be tried on one node.
 */
export class ModeOverride {
  readonly #options: ModeOverrideOptions;
  #config: KubeProxyConfig;
  /** What was said at the last look. */
  #said: string | undefined;

  constructor(options: ModeOverrideOptions) {
    this.#options = options;
    this.#config = options.configured;
  }

  get config(): KubeProxyConfig {
    return this.#config;
  }

  /** Looks what the own Node says now; what it said before has no verdict any more. */
  look(node: Node): Verdict {
    const said = node.metadata.annotations?.[PROXY_MODE_ANNOTATION];
    if (said === this.#said) return undefined;
    this.#said = said;
    const { configured, logger } = this.#options;
    const wanted = said === undefined || said === configured.mode ? configured : this.#read(said);
    if (typeof wanted === 'string') {
      const shown = JSON.stringify(said?.slice(0, SHOWN_CHARACTERS));
      const text = `The annotation ${PROXY_MODE_ANNOTATION}: ${shown} of this Node cannot be followed, mode ${this.#config.mode} stays: ${wanted}`;
      logger.error({ node: node.metadata.name, annotation: PROXY_MODE_ANNOTATION }, text);
      return { kind: 'problem', text };
    }
    if (wanted.mode === this.#config.mode) return undefined;
    logger.info(
      { mode: wanted.mode, before: this.#config.mode, configured: configured.mode },
      said === undefined
        ? `The annotation ${PROXY_MODE_ANNOTATION} of this Node is gone: beginning anew in the configured mode`
        : `The annotation ${PROXY_MODE_ANNOTATION} of this Node names another mode: beginning anew in it`,
    );
    this.#config = wanted;
    return { kind: 'restart' };
  }

  #read(mode: string): KubeProxyConfig | string {
    // The empty text would mean the default.
    if (mode === '') return 'it is empty; name iptables, nftables or ipvs, or remove it';
    return this.#options.inMode(mode);
  }
}
