import type { BridgeVlan } from '../../netlink/route/index.ts';
import type { BridgeConfig, VlanSpan } from '../config/bridge-config.ts';

/** What a pod's port lacks of the VLANs that `setPortVlans` made it a member of. */
export interface MissingVlans {
  /** Its own, whose frames come and go untagged. */
  readonly own: boolean;
  /** Of the trunk, each with the first VLAN that is missing. */
  readonly spans: readonly (VlanSpan & { readonly id: number })[];
}

/** @param has what the port is a member of */
export function missingVlans(
  has: readonly Omit<BridgeVlan, 'index'>[],
  { vlan, vlanTrunk }: Pick<BridgeConfig, 'vlan' | 'vlanTrunk'>,
): MissingVlans {
  const membershipsOf = (id: number) => has.filter(({ first, last }) => first <= id && id <= last);
  return {
    own: vlan > 0 && !membershipsOf(vlan).some(({ pvid, untagged }) => pvid && untagged),
    spans: vlanTrunk.flatMap((span) => {
      for (let id = span.first; id <= span.last; id++) if (membershipsOf(id).length === 0) return [{ ...span, id }];
      return [];
    }),
  };
}
