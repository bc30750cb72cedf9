import { expect } from 'vitest';
import { type KubeProxyConfig, readCommandLine, type Surroundings } from '../../src/config/index.ts';

/** How a configuration file begins. */
export const HEAD = 'apiVersion: kubeproxy.config.k8s.io/v1alpha1\nkind: KubeProxyConfiguration\n';

/** The surroundings of a program called kube-proxy, with `file` (without its head) as its only configuration file. */
export function surroundings(file?: string, changes: Partial<Surroundings> = {}): Surroundings {
  const readFile = (path: string): string => {
    if (file === undefined) throw new Error(`ENOENT: no such file or directory, open '${path}'`);
    return HEAD + file;
  };
  return { program: 'kube-proxy', version: '9.8.7', hostname: ' Node-1\n', readFile, ...changes };
}

/** Reads a command line. */
export const read = (argv: string[], file?: string, changes?: Partial<Surroundings>) =>
  readCommandLine(argv, surroundings(file, changes));

/** The configuration that a command line asks for. Throws when it is refused. */
export function configOf(argv: string[], file?: string, changes?: Partial<Surroundings>): KubeProxyConfig {
  const outcome = read(file === undefined ? argv : ['--config=/c', ...argv], file, changes);
  if (!('config' in outcome)) throw new Error(`refused: ${outcome.output.stderr}`);
  return outcome.config;
}

/** What a command line is refused with. Throws when it is accepted. */
export function refusalOf(argv: string[], file?: string, changes?: Partial<Surroundings>): string {
  const outcome = read(file === undefined ? argv : ['--config=/c', ...argv], file, changes);
  if (outcome.action !== 'refuse') throw new Error(`accepted: ${outcome.action}`);
  expect(outcome).toMatchObject({ exitCode: 1, output: { stdout: '' } });
  return outcome.output.stderr;
}
