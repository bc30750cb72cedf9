export { blocksWithoutPolicy, hasIpsecStates, type IpsecPolicy, listIpsecPolicies } from './policies.ts';
