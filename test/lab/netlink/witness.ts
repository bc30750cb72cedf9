import { Netlink } from '../../../src/netlink/index.ts';
import { inNetns } from '../../../src/sys/index.ts';
import type { TestNamespace } from '../namespace.ts';

/** A route conversation inside a namespace. */
export function openIn(namespace: TestNamespace): Netlink {
  return inNetns(namespace.path, () => Netlink.openRoute());
}

/** What iproute2 sees: the second opinion on everything written here. */
// biome-ignore lint/suspicious/noExplicitAny: another program's output, compared field by field.
export function witness(namespace: TestNamespace, program: 'ip' | 'bridge', ...args: string[]): any[] {
  const output = namespace.run(program, '-j', '-d', ...args);
  return output.trim() === '' ? [] : JSON.parse(output);
}

/** `02:00:00:00:00:07` as bytes and as iproute2 prints it. */
export function mac(last: number): { readonly bytes: Uint8Array; readonly text: string } {
  return { bytes: Uint8Array.of(2, 0, 0, 0, 0, last), text: `02:00:00:00:00:${last.toString(16).padStart(2, '0')}` };
}
