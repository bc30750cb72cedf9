import { readFileSync } from 'node:fs';
import { KernelError } from '../core/index.ts';
import { libc } from './libc.ts';

/** malloc.h */
const M_MMAP_THRESHOLD = -3;
const LARGE_BYTES = 64 * 1024;

/**
 * Has the C library give freed memory back to the kernel: blocks of 64 KiB and more become mappings of their own.
 *
 * glibc raises that limit up to 32 MiB whenever a larger block is freed (mallopt(3)), after which the buffers of watches
 * and restores come from its heaps, where one small block that lives keeps megabytes resident. Other C libraries do as they
 * always do.
 */
export function returnFreedMemory(): void {
  libc().mallopt(M_MMAP_THRESHOLD, LARGE_BYTES);
}

/** madvise(2) */
const MADV_DONTNEED = 4;
const MADV_HUGEPAGE = 14;
/** A huge page where pages are of 4 KiB; of larger pages it is a multiple, too. */
const HUGE_PAGE = 2n * 1024n * 1024n;

/**
 * Gives back what only the start needed: free memory of the C library's heaps, and the pages of programs and libraries, of
 * which Node.js has 50 MiB mapped in by then. What is needed again is where the kernel has it, in its page cache: that costs
 * some hundred minor faults.
 *
 * @throws ERR_SYSCALL when the kernel refuses, as it does for memory that is locked
 */
export function trimAfterStart(): void {
  libc().mallocTrim();
  for (const { start, end } of unwrittenMappings(readFileSync('/proc/self/smaps', 'latin1'))) {
    libc().madvise(start, end - start, MADV_DONTNEED);
  }
}

/**
 * A buffer for much that the kernel writes at once. Of 36 MiB page faults took three times as long as the copying, in a VM; of huge pages,
 * which not every kernel gives to whoever does not ask for them (transparent_hugepage `madvise`), it needs few.
 *
 * @returns with whatever was in that memory
 */
export function allocateForKernel(bytes: number): Buffer {
  const buffer = Buffer.allocUnsafeSlow(bytes);
  const address = libc().address(buffer);
  const [start, end] = [address + HUGE_PAGE - 1n, address + BigInt(bytes)].map((at) => at - (at % HUGE_PAGE));
  if (start! >= end!) return buffer;
  try {
    libc().madvise(start!, end! - start!, MADV_HUGEPAGE);
  } catch (error) {
    // A kernel without huge pages.
    if (!(error instanceof KernelError && error.errnoName === 'EINVAL')) throw error;
  }
  return buffer;
}

/** A range of addresses; `end` is behind it. */
interface Mapping {
  readonly start: bigint;
  readonly end: bigint;
}

/**
 * The private mappings of files in a /proc/PID/smaps that nobody may write to, and nobody has: where the dynamic linker wrote
 * addresses before it closed them, dropping a page would undo that.
 */
export function unwrittenMappings(smaps: string): readonly Mapping[] {
  return smaps.split(/^(?=[0-9a-f]+-)/m).flatMap((text) => {
    const [, start, end] = /^([0-9a-f]+)-([0-9a-f]+) r-[x-]p \S+ \S+ [1-9]\d* +\//.exec(text) ?? [];
    const isUnwritten = /^Anonymous: +0 kB$/m.test(text) && /^Swap: +0 kB$/m.test(text);
    return start && end && isUnwritten ? [{ start: BigInt(`0x${start}`), end: BigInt(`0x${end}`) }] : [];
  });
}
