import type { Check } from './check.ts';
import { ADDRESS_CHECKS } from './checks/addresses.ts';
import { CLUSTER_CHECKS } from './checks/cluster.ts';
import { CONFIG_CHECKS } from './checks/config.ts';
import { KERNEL_CHECKS } from './checks/kernel.ts';
import { LINK_CHECKS } from './checks/links.ts';
import { MODE_CHECKS } from './checks/mode.ts';
import { NODE_CHECKS } from './checks/node.ts';
import { RULE_CHECKS } from './checks/rules.ts';

/** All checks, in the order of the report. Their names are an interface: docs/preflight.md has each. */
export const CHECKS: readonly Check[] = [
  ...CONFIG_CHECKS,
  ...KERNEL_CHECKS,
  ...NODE_CHECKS,
  ...RULE_CHECKS,
  ...LINK_CHECKS,
  ...CLUSTER_CHECKS,
  ...ADDRESS_CHECKS,
  ...MODE_CHECKS,
];
