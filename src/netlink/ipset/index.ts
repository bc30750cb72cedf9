export { getSetTypeRevision } from './capabilities.ts';
export { addMember, deleteMember, listMembers, type SetMember } from './member.ts';
export { deleteIpSet, getSetName, type IpSet, listIpSets, newIpSet, swapIpSets } from './set.ts';
