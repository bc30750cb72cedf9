import { readCommandLine } from '../../config/index.ts';
import { type Cidr, NodeplaneError, parseCidr, readGivenFile } from '../../core/index.ts';

/** Where the addresses of other people's virtual servers are named. */
export interface ExcludedCidrsFlags {
  /** CIDRs with commas between them. */
  readonly ipvsExcludeCidrs?: string;
  /** Path of the agent's configuration file. */
  readonly config?: string;
}

/**
 * The ranges that `nodeplane cleanup` spares, of flag and file together. Unlike the agent's, they are read in any mode: what
 * cannot be read here would be removed.
 *
 * @throws ERR_CONFIG for a file that cannot be used; ERR_ADDRESS_INVALID for what is no CIDR
 */
export function excludedCidrs({ ipvsExcludeCidrs = '', config }: ExcludedCidrsFlags): Cidr[] {
  const fromFlag = ipvsExcludeCidrs.split(',').filter((text) => text.trim() !== '');
  const fromFile = config === undefined ? [] : readExcluded(config);
  return [...fromFlag, ...fromFile].map((text) => parseCidr(text.trim()));
}

function readExcluded(path: string): readonly string[] {
  const outcome = readCommandLine(['--cleanup', '--config', path], {
    program: 'nodeplane agent',
    version: '',
    readFile: (file) => readGivenFile(file).toString('utf8'),
    hostname: '',
  });
  if (outcome.action === 'cleanup') return outcome.config.effective.ipvs.excludeCIDRs ?? [];
  const said = 'output' in outcome ? outcome.output.stderr.trim().replace(/\s*\n\s*/g, '; ') : outcome.action;
  throw new NodeplaneError('ERR_CONFIG', `Cannot read what to leave alone from "${path}": ${said}`);
}
