import { afterAll, expect, it } from 'vitest';
import { createLab, removeAll } from '../lab/lab.ts';
import { waysToHave } from './conflists.ts';
import { standAloneNetwork } from './plugins.ts';
import { createPodman, podmanObjection } from './podman.ts';
import { tracesOf } from './traces.ts';

// Debian's podman 4.3 with its CNI backend.

afterAll(removeAll);

/** Of one network, as `podman inspect` shows it. */
interface Attached {
  readonly IPAddress: string;
  readonly GlobalIPv6Address: string;
  readonly Gateway: string;
  readonly MacAddress: string;
}

it.for(waysToHave('portMappings'))(
  'runs a container with a port served %s, shows its addresses, is reached, and leaves nothing when it is removed',
  async ([, served], { skip }) => {
    const objection = podmanObjection();
    skip(objection !== undefined, objection);
    const lab = createLab();
    const node = lab.addNode({ name: 'node-1' });
    const outside = lab.addClient('outside');
    const podman = await createPodman(node, served(standAloneNetwork(node)));
    const httpd = ['/bin/busybox', 'httpd', '-f', '-p', '80', '-h', '/etc'];
    podman.start({ name: 'first', publish: ['8080:80'] });
    podman.run('rm', '--force', '--time', '0', 'first');
    const before = tracesOf(node, podman.enclosure);

    podman.start({ name: 'web', publish: ['8080:80'], command: httpd });
    const shown = podman.run('inspect', '--format', '{{json .NetworkSettings.Networks}}', 'web');
    const { nodeplane: attached } = JSON.parse(shown) as Record<string, Attached>;
    expect(attached).toMatchObject({
      IPAddress: expect.stringMatching(/^10\.244\.1\./),
      GlobalIPv6Address: expect.stringMatching(/^fd00:10:244:1::/),
      Gateway: '10.244.1.1',
      MacAddress: expect.stringMatching(/^0a:58:/),
    });
    const { IPAddress, GlobalIPv6Address } = attached!;
    for (const ip of [IPAddress, `[${GlobalIPv6Address}]`]) {
      await expect.poll(() => node.httpGet(`http://${ip}/hostname`).catch(String)).toMatchObject({ status: 200 });
    }
    for (const ip of [node.ip(), `[${node.ip('IPv6')}]`]) {
      expect(await outside.httpGet(`http://${ip}:8080/hostname`)).toMatchObject({ status: 200 });
    }

    podman.run('rm', '--force', '--time', '0', 'web');
    expect(await outside.connect({ ip: node.ip(), port: 8080 })).toMatchObject({ kind: 'refused' });
    await expect.poll(() => tracesOf(node, podman.enclosure)).toEqual(before);
  },
);
