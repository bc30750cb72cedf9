import { reportFailure } from './report-failure.ts';
import { runProxy } from './run-proxy.ts';

// dist/kube-proxy: the agent behind kube-proxy's own command line.
runProxy('kube-proxy', process.argv.slice(2)).catch((error: unknown) => reportFailure('kube-proxy', error));
