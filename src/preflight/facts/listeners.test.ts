import { expect, it } from 'vitest';
import { formatIp } from '../../core/index.ts';
import { parseListener, programName } from './listeners.ts';

// Lines of /proc/net/tcp and tcp6 of a Linux 6.18, little endian.
it('reads sockets that listen, and no others', () => {
  const read = (line: string) => {
    const found = parseListener(line);
    return found && [formatIp(found.ip), found.port, found.inode];
  };
  expect(
    read(
      '   0: 0100007F:2809 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 4711 1 0000000000000000 100 0 0 10 0',
    ),
  ).toEqual(['127.0.0.1', 10249, '4711']);
  expect(
    read(
      '   1: 00000000000000000000000001000000:2810 00000000000000000000000000000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 4712 1 0',
    ),
  ).toEqual(['::1', 10256, '4712']);
  expect(
    read('   2: 0100007F:2809 0100007F:D431 01 00000000:00000000 00:00000000 00000000     0        0 4713 1 0'),
  ).toBeUndefined();
  expect(read('')).toBeUndefined();
});

it.each([
  // What `#!/usr/bin/env -S node --flag` makes of the agent's command line.
  ['node --max-semi-space-size=4 /usr/bin/nodeplane agent', 'node nodeplane'],
  ['/usr/bin/python3 -s /usr/sbin/firewalld --nofork', 'python3 firewalld'],
  ['/usr/local/bin/kube-proxy --config=/var/lib/kube-proxy/config.conf', 'kube-proxy'],
  ['', ''],
])('the program of "%s"', (commandLine, name) => {
  expect(programName(commandLine.replaceAll(' ', '\0'))).toBe(name);
});
