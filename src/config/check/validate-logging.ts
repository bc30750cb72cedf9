import { type KubeProxyConfig, LOG_FORMATS, LOG_LEVELS } from '../file/kube-proxy-config.ts';
import type { Configuration } from '../file/schema.ts';
import type { Problems } from '../problems.ts';
import { type FeatureGates, isEnabled } from '../values/feature-gates.ts';
import { verbosityPatterns } from '../values/list-types.ts';
import { quantity } from '../values/logging-types.ts';

/** From this verbosity on, kube-proxy logs what others call debugging. */
const DEBUG_VERBOSITY = 4;

/** Checks the log settings and finds the level that a verbosity stands for. */
export function readLogging(
  effective: Configuration,
  gates: FeatureGates,
  problems: Problems,
): KubeProxyConfig['logging'] {
  const { options, verbosity, vmodule } = effective.logging;
  const format = problems.oneOf('logging.format', effective.logging.format, LOG_FORMATS);
  if (vmodule.length > 0 && format !== 'text') {
    const given = verbosityPatterns.toFlag(vmodule);
    const message = `"${given}" works with the format "text" only, and the format is "${format}": leave it out`;
    problems.add('logging.vmodule', message);
  }
  if (!isEnabled(gates, 'LoggingAlphaOptions')) {
    const gated =
      'needs the feature gate LoggingAlphaOptions: leave it out, or set featureGates.LoggingAlphaOptions to true';
    for (const name of LOG_FORMATS) {
      const { splitStream, infoBufferSize } = options[name];
      if (splitStream) problems.add(`logging.options.${name}.splitStream`, `true ${gated}`);
      if (!quantity.isZero(infoBufferSize)) {
        problems.add(`logging.options.${name}.infoBufferSize`, `${infoBufferSize} ${gated}`);
      }
    }
  }
  const byVerbosity = verbosity >= DEBUG_VERBOSITY ? 'debug' : 'info';
  const level = problems.oneOf('nodeplane.logLevel', effective.nodeplane.logLevel || byVerbosity, LOG_LEVELS);
  return { format, verbosity, level };
}
