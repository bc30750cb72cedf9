export { getIpsetProtocol, getSetTypeRevision } from './capabilities.ts';
export { addMember, addMembers, deleteMember, deleteMembers, listMembers, type SetMember } from './member.ts';
export { deleteIpSet, flushIpSet, type IpSet, listIpSets, newIpSet, renameIpSet, swapIpSets } from './set.ts';
