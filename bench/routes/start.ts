import { ByteWriter } from '../../src/core/index.ts';
import { appendMessage } from '../../src/netlink/index.ts';
import { openSocket } from '../../src/netlink/socket.ts';
import { NETLINK_ROUTE, NLM_F_ACK, NLM_F_REQUEST } from '../../src/netlink/uapi/index.ts';
import { type RouteKernel, type RouteObject, type RouteOperation, requestOf } from '../../src/routes/index.ts';
import { inNetns } from '../../src/sys/index.ts';
import type { TestNamespace } from '../../test/lab/namespace.ts';
import { cpuMs } from '../loop-meter.ts';
import { type Figure, HOLDS_THE_LINE, inTurns, ratioAtMost } from '../report/index.ts';
import { type LinkNames, runTools, toolRuns } from './by-tools.ts';
import { CASES, createNodeNamespace, nameOf, otherNodes, type RouteCase, RouteWorld } from './route-world.ts';

const NODES = 5000;
const ROUNDS = 5;
/** Until the compiler has seen enough of the code to optimise it. */
const WARM_UP = 1;

/** Of processor time, against the kernel alone: what reading and comparing Nodes costs besides. */
const AT_MOST: Readonly<Record<RouteCase['family'], number>> = { IPv4: 4.5, IPv6: 6.5 };

/**
 * From the first Node object to the last route, against what an operator would run for the same routes, and against the kernel
 * taking the same messages: that by the processor, of which what else runs on the machine takes none.
 */
export async function start(): Promise<Figure[]> {
  const figures: Figure[] = [];
  for (const each of CASES) {
    const [ours, tools, kernel]: [Spent[], number[], Spent[]] = [[], [], []];
    for (let round = 0; round < WARM_UP + ROUNDS; round++) {
      const { spent, batches } = await startOnce(each);
      const byTools = await makeByTools(each, batches);
      const raw = await sendRaw(each, batches);
      if (round < WARM_UP) continue;
      ours.push(spent);
      tools.push(byTools);
      kernel.push(raw);
    }
    figures.push(
      {
        what: `${nameOf(each)}: ${NODES} Nodes to kernel`,
        unit: 'ms',
        ...inTurns(
          ours.map(({ clockMs }) => clockMs),
          tools,
        ),
        peerName: each.mode === 'vxlan' ? '`ip -batch`, `bridge -batch`' : '`ip -batch`',
        target: ratioAtMost(1),
      },
      {
        what: `${nameOf(each)}: the same, processor time`,
        unit: 'ms',
        ...inTurns(
          ours.map(({ cpuMs }) => cpuMs),
          kernel.map(({ cpuMs }) => cpuMs),
        ),
        peerName: 'the kernel alone, same messages',
        target: ratioAtMost(AT_MOST[each.family], HOLDS_THE_LINE),
      },
    );
  }
  return figures;
}

type Batches = readonly (readonly RouteOperation[])[];

interface Spent {
  readonly clockMs: number;
  readonly cpuMs: number;
}

/** What some work takes. */
async function spentOn(work: () => unknown): Promise<Spent> {
  const [clock, cpu] = [performance.now(), cpuMs()];
  await work();
  return { cpuMs: cpuMs() - cpu, clockMs: performance.now() - clock };
}

async function startOnce(each: RouteCase): Promise<{ readonly spent: Spent; readonly batches: Batches }> {
  const batches: (readonly RouteOperation[])[] = [];
  const namespace = createNodeNamespace('start');
  const world = new RouteWorld(each, namespace, { seen: (kernel) => recorded(kernel, batches) });
  const nodes = otherNodes(NODES);
  const spent = await spentOn(() => world.start(nodes));
  await world.stop();
  namespace.remove();
  return { spent, batches };
}

/** The kernel, with what it is asked to do in `batches`. */
function recorded(kernel: RouteKernel, batches: (readonly RouteOperation[])[]): RouteKernel {
  return {
    usesNexthops: kernel.usesNexthops,
    attachment: (choice) => kernel.attachment(choice),
    routedWithin: (attachment) => kernel.routedWithin(attachment),
    linkName: (index) => kernel.linkName(index),
    device: (name) => kernel.device(name),
    changeDevice: (operations) => kernel.changeDevice(operations),
    removeDevice: (device) => kernel.removeDevice(device),
    list: (tunnel) => kernel.list(tunnel),
    watch: (changed) => kernel.watch(changed),
    apply(operations) {
      batches.push(operations);
      return kernel.apply(operations);
    },
  };
}

/** Makes the same objects with iproute2. Resolves to the milliseconds it takes, starts of the programs included. */
async function makeByTools(each: RouteCase, batches: Batches): Promise<number> {
  const namespace = await createGround(each, 'tools');
  const runs = toolRuns(
    batches.flat().filter(({ object }) => !isOwn(object)),
    linkNames(namespace),
  );
  const { clockMs } = await spentOn(() => runTools(namespace, runs));
  namespace.remove();
  return clockMs;
}

/** The range of this node's own pods is made with the ground. */
function isOwn(object: RouteObject): boolean {
  return object.kind === 'route' && object.way === 'unreachable';
}

function linkNames(namespace: TestNamespace): LinkNames {
  const links = JSON.parse(namespace.run('ip', '-json', 'link')) as { ifindex: number; ifname: string }[];
  return new Map(links.map(({ ifindex, ifname }) => [ifindex, ifname]));
}

/** A node's namespace where the device is there already. Links have the same numbers in each. */
async function createGround(each: RouteCase, label: string): Promise<TestNamespace> {
  const namespace = createNodeNamespace(label);
  const world = new RouteWorld(each, namespace);
  await world.start([]);
  await world.stop();
  return namespace;
}

/** Sends the same datagrams, made before. */
async function sendRaw(each: RouteCase, batches: Batches): Promise<Spent> {
  const namespace = await createGround(each, 'raw');
  const socket = inNetns(namespace.path, () => openSocket(NETLINK_ROUTE));
  const datagrams = batches.map((operations) => {
    const writer = new ByteWriter(1 << 16);
    for (const [sequence, { type, flags, payload }] of operations.map(requestOf).entries()) {
      const isLast = sequence === operations.length - 1;
      const all = flags | NLM_F_REQUEST | (isLast ? NLM_F_ACK : 0);
      appendMessage(writer, { type, flags: all, sequence, portId: socket.portId, payload });
    }
    return Uint8Array.from(writer.written());
  });
  const spent = await spentOn(() => {
    for (const datagram of datagrams) {
      socket.send(datagram);
      socket.receive();
    }
  });
  socket.close();
  namespace.remove();
  return spent;
}
