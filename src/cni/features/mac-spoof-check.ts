import { formatMac } from '../../core/index.ts';
import { elementFeature } from './tables/element-feature.ts';
import { FRAME_LAYOUT, macElements } from './tables/frame-table.ts';

/**
 * macspoofchk: frames of a pod whose source MAC is not the one that ADD gave it are dropped where they enter the bridge, as
 * with the reference bridge plugin. For an attachment that is two elements of sets, in place of two chains.
 */
export const macSpoofCheck = elementFeature({
  name: 'macspoofchk',
  layout: FRAME_LAYOUT,
  chains: [],
  sets: FRAME_LAYOUT.sets,
  elements: macElements,
  whenMissing: ({ key, mac }) => `Frames of "${key.hostName}" are not held to the MAC ${formatMac(mac)}`,
});
