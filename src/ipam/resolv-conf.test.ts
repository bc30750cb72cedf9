import { expect, it } from 'vitest';
import { parseResolvConf, readResolvConf } from './resolv-conf.ts';

it('reads nameservers, domain, search and options and skips the rest', () => {
  const text = [
    '# written by hand',
    'nameserver 10.96.0.10',
    '  nameserver\tfd00::a ',
    'domain cluster.local',
    'search a.svc b.svc',
    'search c.svc',
    '; note',
    'options ndots:5 edns0',
    'sortlist 10.0.0.0',
    'nameserver',
  ].join('\n');
  expect(parseResolvConf(text)).toEqual({
    nameservers: ['10.96.0.10', 'fd00::a'],
    domain: 'cluster.local',
    search: ['a.svc', 'b.svc', 'c.svc'],
    options: ['ndots:5', 'edns0'],
  });
});

it('gives an empty object for a file that says nothing', () => {
  expect(parseResolvConf('# nothing\n\n')).toEqual({});
});

it('names the key of a file that cannot be read', () => {
  expect(() => readResolvConf('/nonexistent/resolv.conf')).toThrow(
    'Cannot read the file named by ipam.resolvConf, "/nonexistent/resolv.conf"',
  );
});
