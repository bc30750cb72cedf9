import { runCni } from './run-cni.ts';

// dist/nodeplane-cni: only what the plugin needs, because a runtime starts it for every pod.
void runCni(process.argv.slice(2));
