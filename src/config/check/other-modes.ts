import type { GivenFields } from '../file/config-file.ts';
import { withDefaults } from '../file/defaults.ts';
import { valueAt } from '../file/field-path.ts';
import type { FieldPath } from '../file/schema.ts';

/** Fields of a configuration file that count in some modes only. ipvs masquerades by iptables rules. */
const FIELDS_OF_MODES: readonly { readonly modes: readonly string[]; readonly fields: readonly FieldPath[] }[] = [
  { modes: ['iptables'], fields: ['iptables.syncPeriod', 'iptables.minSyncPeriod'] },
  { modes: ['iptables', 'ipvs'], fields: ['iptables.masqueradeBit', 'iptables.masqueradeAll'] },
  {
    modes: ['ipvs'],
    fields: [
      'ipvs.syncPeriod',
      'ipvs.minSyncPeriod',
      'ipvs.scheduler',
      'ipvs.excludeCIDRs',
      'ipvs.strictARP',
      'ipvs.tcpTimeout',
      'ipvs.tcpFinTimeout',
      'ipvs.udpTimeout',
    ],
  },
  {
    modes: ['nftables'],
    fields: ['nftables.masqueradeBit', 'nftables.masqueradeAll', 'nftables.syncPeriod', 'nftables.minSyncPeriod'],
  },
];

/** One sentence for each field of the file that is for other modes than the one that runs, and is not as it is by default. */
export function fieldsOfOtherModes(file: GivenFields, mode: string): string[] {
  const running = mode === '' ? 'iptables' : mode;
  const [given, defaults] = [withDefaults(file), withDefaults({})];
  return FIELDS_OF_MODES.filter(({ modes }) => !modes.includes(running)).flatMap(({ modes, fields }) =>
    fields
      .filter((path) => JSON.stringify(valueAt(given, path)) !== JSON.stringify(valueAt(defaults, path)))
      .map((path) => `${path} has no effect: it is for mode ${modes.join(' and ')}, and the mode is ${running}`),
  );
}
