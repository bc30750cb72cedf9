export { type IpsecPolicy, listIpsecPolicies } from './policies.ts';
