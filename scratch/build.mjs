import { build } from 'esbuild';
await build({ entryPoints: [process.argv[2]], outfile: process.argv[3], bundle: true, platform: 'node', target: 'node20.18', format: 'cjs', alias: { 'whatwg-url': 'node:url' },
 banner: { js: '"use strict";const __moduleUrl=require("node:url").pathToFileURL(__filename).href;' }, define: { 'import.meta.url': '__moduleUrl', __NODEPLANE_BUILD__: '"{}"' } });
