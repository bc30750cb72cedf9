import { reportFailure } from './report-failure.ts';
import { runProxy } from './run-proxy.ts';
import { guardStandardOutput } from './standard-output.ts';

// dist/kube-proxy: the agent behind kube-proxy's own command line.
guardStandardOutput('kube-proxy');
runProxy('kube-proxy', process.argv.slice(2)).catch((error: unknown) => reportFailure('kube-proxy', error));
