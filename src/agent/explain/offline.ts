import { atOnce, IP_FAMILIES, NODE_PATHS, NodeplaneError, shellWord, systemClock } from '../../core/index.ts';
import {
  type Knowledge,
  parseQuestion,
  QuestionError,
  tellKnowledge,
  type WrittenQuestion,
} from '../../explain/index.ts';
import { ManifestSource, ObjectsOf, readOnce } from '../../kube/index.ts';
import {
  isForProxy,
  makeNodePlan,
  Planner,
  podCidrsOf,
  proxyResources,
  ServiceObjects,
  zoneOf,
} from '../../proxy/index.ts';
import { AGENT_ADDRESS, ownCommands } from '../status/own-commands.ts';

const PATIENCE_MS = 15_000;
/** Of nodes, in place of one that there is none of. */
const MOST_NAMES = 5;
/** kube-proxy's default, --iptables-masquerade-bit. */
const MASQUERADE_BIT = 14;

/**
 * What can be known from a directory of manifests, as an agent on the node with default flags would plan it.
 *
 * @throws ERR_CONFIG, ERR_API when the directory cannot be read, or parts of it; QuestionError when it has no such node
 */
export async function readKnowledge(
  written: WrittenQuestion,
  { manifests, nodeName }: { readonly manifests: string; readonly nodeName: string },
): Promise<Knowledge> {
  const source = new ManifestSource({ folder: manifests, resources: proxyResources(nodeName, ''), clock: systemClock });
  const { objects, problems } = await readOnce(source, `"${manifests}"`, PATIENCE_MS);
  if (problems.length > 0) {
    throw new NodeplaneError('ERR_MANIFEST', `Cannot read all of "${manifests}": ${problems[0]}`);
  }
  const store = new ServiceObjects();
  const others = new ObjectsOf('Service', (service) => !isForProxy(service, ''));
  for (const object of objects) {
    store.apply({ type: 'added', object });
    others.apply({ type: 'added', object });
  }
  const node = store.node(nodeName);
  if (!node) {
    const names = [...store.nodes()].slice(0, MOST_NAMES).map(({ metadata }) => metadata.name);
    const known = names.length === 0 ? 'no Node at all' : `of Nodes ${names.join(', ')}`;
    throw new QuestionError(`"${manifests}" has no Node "${nodeName}": it has ${known}. Name one with --node`);
  }
  const families = await Promise.all(
    IP_FAMILIES.map(async (family) => {
      const plan = makeNodePlan({
        family,
        node,
        settings: {
          detectLocal: { mode: 'ClusterCIDR', cidrs: podCidrsOf(node) },
          masqueradeAll: false,
          masqueradeBit: MASQUERADE_BIT,
          nodePortAddresses: 'all',
        },
        localAddresses: [],
        serviceCidrs: store.serviceCidrs(),
      });
      const planner = new Planner({ family, nodeName, zone: zoneOf(node), node: plan });
      const { problems: found } = await planner.rebuild(store);
      const texts = new Map(found.map((problem) => [problem.serviceName, problem.problems]));
      return {
        family,
        node: plan,
        ports: planner.plan.ports,
        explain: (name: string) => planner.explain(name, store),
        writtenSecondsAgo: null,
        failing: null,
        drift: [],
        leftOut: new Map(),
        isUnwritten: () => false,
        problems: (name: string) => texts.get(name) ?? [],
      };
    }),
  );
  const { status, routes, diff, ipamCheck } = ownCommands({
    metrics: AGENT_ADDRESS,
    lockDir: NODE_PATHS.runDir,
    argv: [],
  });
  const sources = {
    nodeName,
    zone: zoneOf(node),
    mode: 'nftables',
    live: false,
    routes: false,
    commands: {
      status,
      routes,
      diff,
      ipamCheck,
      explain: `nodeplane explain --manifests ${shellWord(manifests)} --node ${shellWord(nodeName)}`,
    },
    store,
    families,
    trackingBefore: null,
    seen: null,
    notServed: (name: string) => (others.get(name) ? 'it is headless, or labelled for another proxy' : undefined),
    changedSecondsAgo: () => null,
  } as const;
  return atOnce(tellKnowledge(sources, parseQuestion(written)));
}
