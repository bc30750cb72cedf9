export { getSetTypeRevision } from './capabilities.ts';
export { addMember, addMembers, deleteMember, deleteMembers, listMembers, type SetMember } from './member.ts';
export { deleteIpSet, getSetName, type IpSet, listIpSets, newIpSet, swapIpSets } from './set.ts';
