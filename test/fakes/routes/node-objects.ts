import type { Node } from '../../../src/kube/index.ts';

/** What a Node object of a test says. */
export interface NodeSpec {
  readonly name: string;
  readonly ips: readonly string[];
  readonly podCidrs: readonly string[];
  /** Year of creation. @default unknown */
  readonly year?: number | undefined;
  readonly annotations?: Readonly<Record<string, string>>;
}

export function nodeObject({ name, ips, podCidrs, year, annotations }: NodeSpec): Node {
  return {
    kind: 'Node',
    metadata: {
      name,
      namespace: '',
      ...(year !== undefined && { creationTimestamp: `${year}-01-01T00:00:00Z` }),
      ...(annotations && { annotations }),
    },
    spec: { podCIDRs: podCidrs },
    status: {
      addresses: [{ type: 'Hostname', address: name }, ...ips.map((address) => ({ type: 'InternalIP', address }))],
    },
  };
}

/** Node `n<number>` at 10.0.0.<number> and fd00::<number> with the pods 10.244.<number>.0/24 and fd00:10:244:<number>::/64. */
export function numberedNode(number: number, change: Partial<NodeSpec> = {}): Node {
  return nodeObject({
    name: `n${number}`,
    ips: [`10.0.${number >> 8}.${number & 255}`, `fd00::${number.toString(16)}`],
    podCidrs: [`10.${64 + (number >> 8)}.${number & 255}.0/24`, `fd00:10:244:${number.toString(16)}::/64`],
    ...change,
  });
}
