import { CNI_ERROR, CniError } from '../protocol/errors.ts';

/** A pod as Kubernetes' runtimes name it. */
export interface PodName {
  readonly namespace: string;
  readonly name: string;
}

/** What a runtime says in CNI_ARGS. Other known keys are of no use to the plugin. */
export interface CniArgs {
  /** Addresses asked for, as text. */
  readonly ips: readonly string[];
  readonly mac: string | undefined;
  /** Undefined when the runtime names none. */
  readonly pod: PodName | undefined;
}

/** `GATEWAY` is for the reference's static address plugin. */
const KNOWN = [
  'IgnoreUnknown',
  'IP',
  'MAC',
  'GATEWAY',
  'K8S_POD_NAMESPACE',
  'K8S_POD_NAME',
  'K8S_POD_INFRA_CONTAINER_ID',
  'K8S_POD_UID',
];

/**
 * Parses `KEY=value;KEY=value`. A key that is not known is refused unless `IgnoreUnknown` is true, as in the reference
 * library.
 *
 * @throws CniError 4
 */
export function parseCniArgs(text: string | undefined): CniArgs {
  const values = new Map<string, string>();
  for (const part of text ? text.split(';').filter(Boolean) : []) {
    const [key, value, ...rest] = part.split('=');
    if (!key || value === undefined || rest.length > 0) throw invalidArgs(part, 'it must be KEY=value');
    values.set(key, value);
  }
  if (!/^(1|t|true)$/i.test(values.get('IgnoreUnknown') ?? '')) {
    const unknown = [...values.keys()].find((key) => !KNOWN.includes(key));
    if (unknown !== undefined) throw invalidArgs(unknown, 'the key is not known, and IgnoreUnknown is not set');
  }
  const ips = (values.get('IP') ?? '').split(',').map((ip) => ip.trim());
  const [namespace, name] = [values.get('K8S_POD_NAMESPACE'), values.get('K8S_POD_NAME')];
  return {
    ips: ips.filter(Boolean),
    mac: values.get('MAC') || undefined,
    pod: namespace && name ? { namespace, name } : undefined,
  };
}

function invalidArgs(part: string, reason: string): CniError {
  return new CniError(CNI_ERROR.INVALID_ENVIRONMENT, `Cannot use CNI_ARGS "${part}": ${reason}`);
}
