import type { InterfaceName } from '../../protocol/environment.ts';

/** What every pod that has one calls its second interface, as with openshift-sdn. */
export const MACVLAN_NAME = 'macvlan0' as InterfaceName;
