import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { endianness } from 'node:os';
import { afterAll, expect, it } from 'vitest';
import { inNetns, libc } from '../../../src/sys/index.ts';
import { createNamespace, own, removeAll, type TestNamespace } from '../namespace.ts';
import { patient } from '../patience.ts';
import { createServedNode } from './served-node.ts';

// What a pod sends right after its ADD is not lost. A frame that nobody sends again shows it: TCP, ARP and DNS try again, and
// all that is seen of it is a second that the pod's start takes longer.

const PODS = 50;
const AF_PACKET = 17;
const SOCK_RAW = 3;
const SOCK_CLOEXEC = 0o2000000;
const POLLIN = 1;
/** For experiments: no kernel answers it. */
const ETHERTYPE = 0x88b5;

afterAll(removeAll);

it(
  `carries the first frame of a pod to another pod, ${PODS} times in a row, while others make namespaces`,
  async () => {
    const served = createServedNode();
    await served.startAgent();
    const receiver = createNamespace('receiver');
    expect((await served.call('ADD', receiver)).status).toBe(0);
    const received = openPacketSocket(receiver);
    bindTo(received, receiver);
    const senders = Array.from({ length: PODS }, (_, number) => createNamespace(`sender${number}`));
    makeContention();
    const lost: number[] = [];
    for (const [number, pod] of senders.entries()) {
      const socket = openPacketSocket(pod);
      const { status, stdout } = await served.call('ADD', pod);
      bindTo(socket, pod);
      libc().send(socket, frame(number), 0);
      expect(status, stdout).toBe(0);
      if (!arrives(received, number)) lost.push(number);
    }
    expect(lost).toEqual([]);
  },
  patient(180_000),
);

/** Namespaces come and go: each takes the lock that also the work queue takes which tells bridges of a port's carrier. */
function makeContention(): void {
  for (let i = 0; i < 2; i++) {
    const child = spawn('sh', ['-c', 'while :; do unshare --net true; done'], { stdio: 'ignore' });
    own(() => void child.kill());
  }
}

function openPacketSocket(namespace: TestNamespace): number {
  const socket = inNetns(namespace.path, () => libc().socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0));
  own(() => libc().close(socket));
  return socket;
}

/** sockaddr_ll (packet(7)); without a question to the kernel that would wait for the same lock. */
function bindTo(socket: number, namespace: TestNamespace): void {
  const address = Buffer.alloc(20);
  const isLittle = endianness() === 'LE';
  if (isLittle) address.writeUInt16LE(AF_PACKET, 0);
  else address.writeUInt16BE(AF_PACKET, 0);
  address.writeUInt16BE(ETHERTYPE, 2);
  const index = linkIndex(namespace, 'eth0');
  if (isLittle) address.writeInt32LE(index, 4);
  else address.writeInt32BE(index, 4);
  libc().bind(socket, address);
}

/** Of a link with an IPv6 address. The columns of if_inet6: address, index in hexadecimal, ..., name. */
function linkIndex(namespace: TestNamespace, name: string): number {
  const lines = inNetns(namespace.path, () => readFileSync('/proc/thread-self/net/if_inet6', 'utf8')).split('\n');
  const [, index] = lines.find((line) => line.endsWith(` ${name}`))!.split(' ');
  return Number.parseInt(index!, 16);
}

/** To everybody on the link. */
function frame(number: number): Buffer {
  const bytes = Buffer.alloc(60);
  bytes.fill(0xff, 0, 6);
  bytes.fill(0x02, 6, 12);
  bytes.writeUInt16BE(ETHERTYPE, 12);
  bytes.writeUInt32BE(number, 14);
  return bytes;
}

function arrives(socket: number, number: number): boolean {
  const bytes = Buffer.alloc(2000);
  while (libc().poll(socket, POLLIN, patient(1000)) !== 0) {
    const length = libc().recv(socket, bytes, 0);
    if (length >= 18 && bytes.readUInt32BE(14) === number) return true;
  }
  return false;
}
