import { isMapping, nearestWord } from '../../../../core/index.ts';

/** Fields of a kubeconfig (client-go's clientcmd/api/v1). `token-file` is what some write for `tokenFile`. */
const FIELDS = {
  '': 'apiVersion kind preferences clusters users contexts current-context extensions',
  clusters:
    'server tls-server-name insecure-skip-tls-verify certificate-authority certificate-authority-data proxy-url ' +
    'disable-compression extensions',
  contexts: 'cluster user namespace extensions',
  users:
    'client-certificate client-certificate-data client-key client-key-data token tokenFile token-file as as-uid as-groups ' +
    'as-user-extra username password auth-provider exec extensions',
};

const MEMBERS = { clusters: 'cluster', contexts: 'context', users: 'user' } as const;

/**
 * Fields that nobody reads, with those that were probably meant: `; "tokn" of users "x" is not read, did you mean "token"?`. In
 * client-go as here they are no error, so this ends the message of another. Empty: there are none.
 */
export function misspeltFields(config: Readonly<Record<string, unknown>>): string {
  const entries = Object.entries(MEMBERS).flatMap(([list, member]) => {
    const named = Array.isArray(config[list]) ? config[list].filter(isMapping) : [];
    return named.map((one) => [list as keyof typeof MEMBERS, `${list} "${String(one.name)}"`, one[member]] as const);
  });
  return [['', 'it', config] as const, ...entries]
    .flatMap(([kind, where, value]) => {
      const known = FIELDS[kind].split(' ');
      const unknown = isMapping(value) ? Object.keys(value).filter((name) => !known.includes(name)) : [];
      return unknown.map((name) => [name, where, nearestWord(name, known)] as const);
    })
    .map(([name, where, meant]) => (meant ? `; "${name}" of ${where} is not read, did you mean "${meant}"?` : ''))
    .join('');
}
