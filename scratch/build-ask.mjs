import { build } from 'esbuild';
const withoutSideEffects = {
  name: 'without-side-effects',
  setup({ onResolve, resolve }) {
    onResolve({ filter: /^\./ }, async ({ path, pluginData, ...from }) => {
      if (pluginData === withoutSideEffects) return undefined;
      return { ...(await resolve(path, { ...from, pluginData: withoutSideEffects })), sideEffects: false };
    });
  },
};
const r = await build({ metafile:true, entryPoints: [process.argv[2]], outfile: process.argv[3], bundle: true, platform: 'node', target: 'node20.18', format: 'cjs', alias: { 'whatwg-url': 'node:url' },
 minifySyntax: true, minifyWhitespace: true, legalComments:'none',plugins:[withoutSideEffects],supported: { 'dynamic-import': false },
 banner: { js: '(function(require,__filename){"use strict";const __moduleUrl=require("node:url").pathToFileURL(__filename).href;' }, footer:{js:'})'}, define: { 'import.meta.url': '__moduleUrl', __NODEPLANE_BUILD__: '"{}"' } });
const o=Object.values(r.metafile.outputs)[0]; const by={};
for(const [k,v] of Object.entries(o.inputs)){const p=k.startsWith('node_modules')?k.split('/').slice(0,2+(k.split('/')[1][0]=='@'?1:0)).join('/'):k.split('/').slice(0,3).join('/');by[p]=(by[p]||0)+v.bytesInOutput}
console.log(Object.entries(by).sort((a,b)=>b[1]-a[1]).slice(0,45)); console.log(o.bytes, Object.keys(o.inputs).length);
