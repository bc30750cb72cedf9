import { errorText, isMapping, parseJson } from '../../core/index.ts';
import { isNetworkName, type NetworkName } from './environment.ts';
import { CNI_ERROR, CniError } from './errors.ts';
import { invalidConfig, type Json } from './json.ts';
import { type CniVersion, isSupported, SUPPORTED_VERSIONS } from './versions.ts';

/** The key by which GC is told which attachments are to stay. */
export const VALID_ATTACHMENTS = 'cni.dev/valid-attachments';

/** What every command needs of the configuration, and the rest unparsed. */
export interface NetworkHeader {
  readonly cniVersion: CniVersion;
  readonly name: NetworkName;
  /** The plugin's name as the configuration gives it; '' when absent. */
  readonly type: string;
  readonly raw: Json;
}

/**
 * Parses what all commands need. Checked in this order: JSON (code 6), version (1), name (7).
 *
 * @param text the configuration from stdin
 */
export function parseHeader(text: string): NetworkHeader {
  let raw: unknown;
  try {
    raw = parseJson(text);
  } catch (cause) {
    const found = text.trim() === '' ? 'standard input is empty' : errorText(cause);
    throw new CniError(CNI_ERROR.DECODING_FAILURE, `Cannot read the network configuration as JSON: ${found}`, {
      cause,
    });
  }
  if (!isMapping(raw)) {
    throw new CniError(CNI_ERROR.DECODING_FAILURE, 'Cannot read the network configuration: it is no JSON object');
  }
  // The specification gives a configuration without version the oldest one.
  const cniVersion = raw.cniVersion === undefined || raw.cniVersion === '' ? '0.1.0' : raw.cniVersion;
  if (typeof cniVersion !== 'string' || !isSupported(cniVersion)) {
    throw new CniError(CNI_ERROR.INCOMPATIBLE_VERSION, 'incompatible CNI versions', {
      details: `config is ${JSON.stringify(cniVersion)}, plugin supports ${JSON.stringify(SUPPORTED_VERSIONS)}`,
    });
  }
  const { name } = raw;
  if (name === undefined || name === '') {
    throw invalidConfig('missing network name: key "name" is absent or empty');
  }
  if (!isNetworkName(name)) {
    throw invalidConfig(
      `Cannot use name ${JSON.stringify(name)}: only letters, digits, "_", "." and "-" are allowed, beginning with a letter or digit`,
    );
  }
  return { cniVersion, name, type: typeof raw.type === 'string' ? raw.type : '', raw };
}
