import type { IpAddress, IpFamily } from '../../core/index.ts';
import { type Node, nodeIpsOf } from '../../kube/index.ts';
import { AddressRules, API_SERVER_SERVICE, makeNodePlan, type NodePlan, zoneOf } from '../plan/index.ts';
import type { FamilyProxyOptions, LocalAddresses } from './family-proxy-options.ts';

type KnownNodeOptions = Pick<
  FamilyProxyOptions,
  'store' | 'nodeName' | 'settings' | 'localAddresses' | 'ownSource' | 'apiServer' | 'externalIpCidrs'
>;

/** What one family knows of the node it works on, and which addresses may be no Service's for that. */
export class KnownNode {
  readonly #options: KnownNodeOptions;
  readonly #family: IpFamily;
  readonly #listingFailed: (error: unknown) => void;
  #lastNode: Node | undefined;
  #lastAddresses: LocalAddresses | undefined;
  #rules: AddressRules;
  #areRulesOutdated = false;

  /** @param listingFailed hears why the addresses here cannot be listed: those that were listed last are taken */
  constructor(options: KnownNodeOptions, family: IpFamily, listingFailed: (error: unknown) => void) {
    this.#options = options;
    this.#family = family;
    this.#listingFailed = listingFailed;
    this.#rules = this.#makeRules();
  }

  /** False until the addresses on this machine's interfaces could be listed for the first time. */
  get hasAddresses(): boolean {
    return this.#lastAddresses !== undefined;
  }

  /** Which addresses may be no Service's, as of the last `renewRules`. */
  get rules(): AddressRules {
    return this.#rules;
  }

  /** Something that the rules are made of may have changed since. */
  get areRulesOutdated(): boolean {
    return this.#areRulesOutdated;
  }

  outdateRules(): void {
    this.#areRulesOutdated = true;
  }

  /** Whether the rules would be others now. */
  wouldChangeRules(): boolean {
    return !this.#makeRules().equals(this.#rules);
  }

  /** @returns whether they refuse anything else now */
  renewRules(): boolean {
    this.#areRulesOutdated = false;
    const rules = this.#makeRules();
    if (rules.equals(this.#rules)) return false;
    this.#rules = rules;
    return true;
  }

  /**
   * Lists the addresses on this machine's interfaces; those that were listed last, when that fails.
   *
   * @throws what the listing throws, when there are none yet
   */
  listAddresses(): readonly IpAddress[] {
    try {
      this.#lastAddresses = this.#options.localAddresses();
    } catch (error) {
      if (!this.#lastAddresses) throw error;
      this.#listingFailed(error);
    }
    return this.#lastAddresses.all;
  }

  /** What the plan needs of it, by the objects of now. */
  plan(localAddresses: readonly IpAddress[]): { readonly node: NodePlan; readonly zone: string } {
    const { store, nodeName, settings, ownSource } = this.#options;
    this.#lastNode = this.#lasting(store.node(nodeName));
    const objects = { node: this.#lastNode, localAddresses, ownSource, serviceCidrs: store.serviceCidrs() };
    return { node: makeNodePlan({ family: this.#family, settings, ...objects }), zone: zoneOf(this.#lastNode) };
  }

  /**
   * A Node object that is deleted, to be registered again perhaps, or that has no address for a while, takes none away
   * from a node that runs.
   */
  #lasting(node: Node | undefined): Node | undefined {
    const last = this.#lastNode;
    if (!node || !last || nodeIpsOf(node).length > 0) return node ?? last;
    return { ...node, status: { ...node.status, addresses: last.status?.addresses ?? [] } };
  }

  #makeRules(): AddressRules {
    const { store, nodeName, settings, apiServer, externalIpCidrs = [] } = this.#options;
    const { nodeIp } = settings;
    const node = this.#lasting(store.node(nodeName));
    return new AddressRules({
      serviceCidrs: store.serviceCidrs(),
      nodes: store.nodes(),
      nodeIps: [...(node ? nodeIpsOf(node) : []), ...(nodeIp ? [nodeIp] : [])],
      ownAddresses: this.#lastAddresses?.own ?? [],
      apiServer: apiServer?.(),
      apiService: store.service(API_SERVER_SERVICE),
      apiSlices: store.slices(API_SERVER_SERVICE),
      externalIpCidrs,
    });
  }
}
