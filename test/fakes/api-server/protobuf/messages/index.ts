import { CORE } from './core.ts';
import { DISCOVERY } from './discovery.ts';
import { META } from './meta.ts';
import { NODE } from './node.ts';
import { SMALL_GROUPS } from './small-groups.ts';

/** All definitions, in the language of .proto files: as text in modules, which are there too in a bundled benchmark. */
export const DEFINITIONS: readonly string[] = [META, CORE, NODE, DISCOVERY, ...SMALL_GROUPS];
