import { formatIp, isExists, isNotFound, sameBytes } from '../../../core/index.ts';
import type { Netlink } from '../../../netlink/index.ts';
import type { NftElement, NftElements, NftRuleset } from '../../../netlink/nftables/index.ts';
import { getLink } from '../../../netlink/route/index.ts';
import { tableRepairs } from '../../../nft/index.ts';
import { failpoint } from '../../../sys/index.ts';
import { withRuleset } from '../../link/sockets.ts';
import { writeSysctlIfPresent } from '../../link/sysctls.ts';
import type { AttachmentKey } from '../../protocol/attachment-key.ts';
import { CNI_ERROR, CniError } from '../../protocol/errors.ts';
import type { AttachmentFeature } from '../feature.ts';
import { mappedPorts } from '../tables/mapped-port.ts';
import { describeOwner, isOwnedBy, isStale, linkOf } from '../tables/owner-comment.ts';
import { POD_LAYOUT } from '../tables/pod-chains.ts';
import { describePortKey, mappedPortOf, portElements, portElementText } from '../tables/pod-elements.ts';
import {
  deletePodElements,
  deletions,
  hasTable,
  listPodElements,
  retried,
  selectElements,
} from '../tables/pod-ruleset.ts';
import { POD_TABLE, podSets } from '../tables/pod-table.ts';
import { endFlowsToPod, endOlderFlows } from './mapped-flows.ts';

/** In the order in which they are emptied: first no new connection, then no masquerade. */
const SETS = podSets(['ports', 'address-ports', 'hairpin']);

/**
 * portMappings: ports of the node that lead to a pod. A mapping is an element of a map, so its cost does not grow with
 * their number, and two attachments cannot have the same port: the kernel refuses the second.
 *
 * A mapping for one address of the node beats one of the same port for all addresses, which may belong to somebody else.
 */
export const portMappings: AttachmentFeature = {
  name: 'portmappings',
  layout: POD_LAYOUT,
  wantedIn: (attachment) => ({ elements: portElements(attachment) }),

  setUp(context) {
    const { key, features, host, hostLink, gateway, undo } = context;
    const settings = features.portMappings!;
    const ports = mappedPorts(context);
    if (ports.length === 0) return [];
    undo.add('map ports', () => withRuleset((ruleset) => removePorts(ruleset, key)));
    withRuleset((ruleset) => addPorts(ruleset, host, key, portElements(context)));
    failpoint('ports');
    if (settings.snat && ports.some(({ family }) => family === 'IPv4')) {
      // Lets packets from 127.0.0.1 out to the pods. Of a gateway it stays, because other pods may rely on it.
      writeSysctlIfPresent(`net/ipv4/conf/${(gateway ?? hostLink).name}/route_localnet`, 1);
    }
    endOlderFlows(host, ports);
    return [];
  },

  check(context) {
    const { key } = context;
    return withRuleset((ruleset) => {
      const present = listPodElements(ruleset, SETS);
      const problems = portElements(context).flatMap((wanted) =>
        wanted.elements.flatMap((element) => {
          const found = findElement(present, wanted, element);
          if (found && isOwnedBy(found.comment, key) && sameBytes(found.data, element.data)) return [];
          const holder = found && !isOwnedBy(found.comment, key) ? `; it leads to ${describeOwner(found.comment)}` : '';
          return [`${describePortKey(wanted, element)} does not lead to the pod${holder}`];
        }),
      );
      if (tableRepairs(ruleset, POD_LAYOUT).length === 0) return [...new Set(problems)];
      return [...new Set(problems), `Rules of nftables table "${POD_TABLE.name}" are missing or were changed`];
    });
  },

  tearDown({ key }) {
    withRuleset((ruleset) => {
      if (hasTable(ruleset, POD_TABLE)) removePorts(ruleset, key);
    });
  },

  collect({ network, valid }) {
    withRuleset((ruleset) => {
      const gone = deletePodElements(ruleset, SETS, (comment) => isStale(comment, network, valid));
      endFlowsToPod(gone.flatMap(mappedPortOf));
    });
  },
};

/** Adds an attachment's elements, in the place of what it may have left. Throws CniError 103 naming who has a port. */
function addPorts(ruleset: NftRuleset, host: Netlink, key: AttachmentKey, wanted: readonly NftElements[]): void {
  // Refused because of what came or went since it was listed: the next listing tells.
  retried(
    (error) => isExists(error) || isNotFound(error),
    () => {
      const present = listPodElements(ruleset, SETS);
      const replaced = holdersOf(present, wanted).filter((holder) => isGone(host, key, holder));
      ruleset.commit([
        ...tableRepairs(ruleset, POD_LAYOUT),
        ...deletions(
          selectElements(
            present,
            (comment) => isOwnedBy(comment, key) || replaced.some((by) => by.comment === comment),
          ),
        ),
        ...wanted.map((object) => ({ operation: 'create', object }) as const),
      ]);
    },
  );
}

/** An attachment that has a port somebody wants. */
interface PortHolder {
  readonly comment: string | undefined;
  /** The port, in words. */
  readonly port: string;
  /** Where the port leads, and how to remove what leads there. */
  readonly remedy: string;
}

function holdersOf(present: readonly NftElements[], wanted: readonly NftElements[]): PortHolder[] {
  return wanted.flatMap((set) =>
    set.elements.flatMap((element) => {
      const found = findElement(present, set, element);
      if (!found) return [];
      return [{ comment: found.comment, port: describePortKey(set, element), remedy: remedyOf(set, found) }];
    }),
  );
}

function remedyOf(set: NftElements, element: NftElement): string {
  const [mapped] = mappedPortOf({ ...set, elements: [element] });
  const target = mapped ? `it leads to ${formatIp(mapped.pod.address)}; ` : '';
  return `${target}if nothing needs it, nft delete element ${set.family} ${set.table} ${set.set} '${portElementText(set, element)}'`;
}

/** Whether a holder is this attachment itself, or one whose link vanished with its namespace. Throws CniError 103. */
function isGone(host: Netlink, key: AttachmentKey, { comment, port, remedy }: PortHolder): boolean {
  if (isOwnedBy(comment, key)) return true;
  const link = linkOf(comment);
  if (link !== undefined && !getLink(host, { name: link })) return true;
  // A pod that is there gives it back by itself.
  const what = link === undefined ? `: ${remedy}` : '';
  throw new CniError(CNI_ERROR.HOST_PORT_IN_USE, `${port} is in use by ${describeOwner(comment)}${what}`);
}

function removePorts(ruleset: NftRuleset, key: AttachmentKey): void {
  const gone = deletePodElements(ruleset, SETS, (comment) => isOwnedBy(comment, key));
  // Later packets of a flow do not ask the maps again.
  endFlowsToPod(gone.flatMap(mappedPortOf));
}

function findElement(
  present: readonly NftElements[],
  { set }: NftElements,
  element: NftElement,
): NftElement | undefined {
  return present
    .find((other) => other.set === set)
    ?.elements.find(({ key, keyEnd }) => sameBytes(key, element.key) && sameBytes(keyEnd, element.keyEnd));
}
