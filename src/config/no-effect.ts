import { fieldAt, valueAt } from './file/field-path.ts';
import type { Configuration, FieldPath } from './file/schema.ts';
import { FLAG_NAMES, flagNamed } from './flags/flags.ts';
import type { GivenFlags } from './flags/parse-flags.ts';
import { flagFor } from './problems.ts';

const ONE_STREAM = 'the whole log goes to stderr';
const NO_BUFFER = 'every line of the log is written at once';
const WINDOWS = 'it is for kube-proxy on Windows';

/**
 * Fields that are read and checked, so that kube-proxy's command lines and files work, but change nothing, each with the
 * reason. All others have a reader, which no-effect.test.ts names.
 */
export const NO_EFFECT: Readonly<Partial<Record<FieldPath, string>>> = {
  'logging.flushFrequency': NO_BUFFER,
  'logging.vmodule': 'no source file has a verbosity of its own',
  'logging.options.text.splitStream': ONE_STREAM,
  'logging.options.text.infoBufferSize': NO_BUFFER,
  'logging.options.json.splitStream': ONE_STREAM,
  'logging.options.json.infoBufferSize': NO_BUFFER,
  showHiddenMetricsForVersion: 'no metric is hidden',
  configSyncPeriod: 'every list is compared with what is known, and the rules with the kernel each sync period',
  portRange: 'kube-proxy does nothing with it either',
  windowsRunAsService: WINDOWS,
  'winkernel.networkName': WINDOWS,
  'winkernel.sourceVip': WINDOWS,
  'winkernel.enableDSR': WINDOWS,
  'winkernel.rootHnsEndpointName': WINDOWS,
  'winkernel.forwardHealthCheckVip': WINDOWS,
};

/**
 * What the user should know of options that change nothing: one sentence for each that has another value than its default,
 * wherever it comes from, and one for the flags that a configuration file replaces.
 */
export function effectWarnings(flags: GivenFlags, effective: Configuration): string[] {
  const fields = (Object.entries(NO_EFFECT) as [FieldPath, string][]).flatMap(([path, reason]) => {
    const { type, fallback } = fieldAt(path);
    if (type.toFlag(valueAt(effective, path) as never) === type.toFlag(fallback as never)) return [];
    const flag = flagFor(path);
    return [`${path}${flag ? ` (--${flag})` : ''} has no effect: ${reason}`];
  });
  const given = FLAG_NAMES.filter((name) => flags[name] !== undefined);
  const ignored = given
    .filter((name) => flagNamed(name).ignored)
    .map((name) => `Flag --${name} has no effect: kube-proxy does nothing with it either`);
  const replaced = flags.config
    ? given.filter((name) => !flagNamed(name).besideFile && !flagNamed(name).ignored).map((name) => `--${name}`)
    : [];
  const byFile = replaced.length === 0 ? [] : [`The configuration file replaces these flags: ${replaced.join(', ')}`];
  return [...fields, ...ignored, ...byFile];
}
