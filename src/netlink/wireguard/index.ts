export { newWireguardLink, type WireguardLinkSpec } from './device-link.ts';
export type { Endpoint } from './endpoint.ts';
export { getWireguard, getWireguardInSlices, type WireguardDevice, type WireguardPeer } from './get-device.ts';
export { formatKey, generatePrivateKey, publicKeyOf, tryParseKey } from './key.ts';
export { openWireguard } from './open.ts';
export { type PeerChange, setWireguard, type WireguardChange } from './set-device.ts';
export type { WireguardFamily } from './wireguard-request.ts';
