import { ByteWriter } from '../../src/core/index.ts';
import { appendMessage } from '../../src/netlink/index.ts';
import { openSocket } from '../../src/netlink/socket.ts';
import { NETLINK_ROUTE, NLM_F_ACK, NLM_F_REQUEST } from '../../src/netlink/uapi/index.ts';
import { type RouteKernel, type RouteOperation, requestOf } from '../../src/routes/index.ts';
import { inNetns } from '../../src/sys/index.ts';
import { cpuMs } from '../loop-meter.ts';
import { type Figure, inTurns, ratioAtMost } from '../report/index.ts';
import { CASES, createNodeNamespace, nameOf, otherNodes, type RouteCase, RouteWorld } from './route-world.ts';

const NODES = 5000;
const ROUNDS = 5;
/** Until the compiler has seen enough of the code to optimise it. */
const WARM_UP = 1;

/**
 * From the first Node object to the last route, against the time in which the kernel takes the same messages: by the clock, and
 * by the processor, of which what else runs on the machine takes none.
 */
export async function start(): Promise<Figure[]> {
  const figures: Figure[] = [];
  for (const each of CASES) {
    const [ours, kernel]: [Spent[], Spent[]] = [[], []];
    for (let round = 0; round < WARM_UP + ROUNDS; round++) {
      const { spent, batches } = await startOnce(each);
      const raw = await sendRaw(each, batches);
      if (round < WARM_UP) continue;
      ours.push(spent);
      kernel.push(raw);
    }
    const figure = (what: string, key: keyof Spent): Figure => ({
      what: `${nameOf(each)}: ${what}`,
      unit: 'ms',
      ...inTurns(
        ours.map((spent) => spent[key]),
        kernel.map((spent) => spent[key]),
      ),
      peerName: 'the kernel alone, same messages',
      target: ratioAtMost(2),
    });
    figures.push(figure(`${NODES} Nodes to kernel`, 'clockMs'), figure('the same, processor time', 'cpuMs'));
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
    device: (name) => kernel.device(name),
    changeDevice: (operations) => kernel.changeDevice(operations),
    list: (tunnel) => kernel.list(tunnel),
    watch: (changed) => kernel.watch(changed),
    apply(operations) {
      batches.push(operations);
      return kernel.apply(operations);
    },
  };
}

/** Sends the same datagrams, made before, where the device is there already. Links have the same numbers in each namespace. */
async function sendRaw(each: RouteCase, batches: Batches): Promise<Spent> {
  const namespace = createNodeNamespace('raw');
  const world = new RouteWorld(each, namespace);
  await world.start([]);
  await world.stop();
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
