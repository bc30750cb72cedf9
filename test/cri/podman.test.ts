import { afterAll, expect, it } from 'vitest';
import { createLab, type LabNode, removeAll } from '../lab/lab.ts';
import { waysToHave } from './conflists.ts';
import { type CniRuntime, serveByAgent, serveStandAlone, standAloneNetwork } from './plugins.ts';
import { createPodman, podmanObjection } from './podman.ts';
import { tracesOf } from './traces.ts';

// Debian's podman 4.3 with its CNI backend.

afterAll(removeAll);

const WAYS: [way: string, serve: (podman: CniRuntime, node: LabNode) => Promise<unknown>][] = [
  ...waysToHave('portMappings').map(([way, served]): (typeof WAYS)[number] => [
    way,
    (podman, node) => serveStandAlone(podman, served(standAloneNetwork(node))),
  ]),
  ['by the agent with the configuration it installs', serveByAgent],
];

it.for(WAYS)(
  'runs a container with a port served %s, shows its addresses, is reached, and leaves nothing when it is removed',
  async ([, serve], { skip }) => {
    const objection = podmanObjection();
    skip(objection !== undefined, objection);
    const lab = createLab();
    const node = lab.addNode({ name: 'node-1' });
    const outside = lab.addClient('outside');
    const podman = await createPodman(node);
    await serve(podman, node);
    await podman.start({ name: 'first', publish: ['8080:80'] }).remove();
    const before = tracesOf(node, podman.enclosure);

    const httpd = ['/bin/busybox', 'httpd', '-f', '-p', '80', '-h', '/etc'];
    const web = podman.start({ name: 'web', publish: ['8080:80'], command: httpd });
    expect(web.attached).toMatchObject({
      IPAddress: expect.stringMatching(/^10\.244\.1\./),
      GlobalIPv6Address: expect.stringMatching(/^fd00:10:244:1::/),
      Gateway: '10.244.1.1',
      MacAddress: expect.stringMatching(/^0a:58:/),
    });
    for (const ip of [web.ip(), `[${web.ip('IPv6')}]`]) {
      await expect.poll(() => node.httpGet(`http://${ip}/hostname`).catch(String)).toMatchObject({ status: 200 });
    }
    for (const ip of [node.ip(), `[${node.ip('IPv6')}]`]) {
      expect(await outside.httpGet(`http://${ip}:8080/hostname`)).toMatchObject({ status: 200 });
    }

    await web.remove();
    expect(await outside.connect({ ip: node.ip(), port: 8080 })).toMatchObject({ kind: 'refused' });
    await expect.poll(() => tracesOf(node, podman.enclosure)).toEqual(before);
  },
);
