export { familyOf, serverKey } from './compile/server.ts';
export { elementKey, elementText, kernelSetName, SET_NAMES, type SetElement } from './compile/sets.ts';
export { IpvsDataplane } from './dataplane.ts';
export type { Operation } from './diff/operations.ts';
export type { IpvsKernel } from './kernel/kernel.ts';
export { openIpvsKernel } from './kernel/netlink-kernel.ts';
export { ipvsMode } from './mode/ipvs-mode.ts';
export { checkIpvs } from './preflight.ts';
export { prepareIpvs } from './settings.ts';
