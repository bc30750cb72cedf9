import { readCommandLine } from '../../src/config/index.ts';

/** What an agent's start warns of. @param file lines of a configuration file. @default there is none */
export function warningsOf(argv: readonly string[], file?: string): string[] {
  const outcome = readCommandLine(file === undefined ? [...argv] : ['--config=/c', ...argv], {
    program: 'nodeplane agent',
    version: '1',
    hostname: 'node',
    readFile: () => `apiVersion: kubeproxy.config.k8s.io/v1alpha1\nkind: KubeProxyConfiguration\n${file}`,
  });
  if (outcome.action === 'refuse') throw new Error(outcome.output.stderr);
  return outcome.messages.flatMap(({ level, text }) => (level === 'warn' ? [text] : []));
}
