export { blocksWithoutPolicy, type IpsecPolicy, listIpsecPolicies } from './policies.ts';
