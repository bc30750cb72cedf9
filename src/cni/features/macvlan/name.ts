import type { InterfaceName } from '../../protocol/environment.ts';
import type { ResultInterface } from '../../protocol/result.ts';

/** What every pod that has one calls its second interface, as with openshift-sdn. */
export const MACVLAN_NAME = 'macvlan0' as InterfaceName;

/** Whether an interface of a result is a pod's second one. */
export function isMacvlan({ name, sandbox }: ResultInterface): boolean {
  return name === MACVLAN_NAME && sandbox !== undefined;
}
