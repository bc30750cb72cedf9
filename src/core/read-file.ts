import { closeSync, constants, fstatSync, openSync, readFileSync } from 'node:fs';

/** Bytes of a file that somebody writes for us. A ConfigMap or Secret has room for a quarter. */
const LARGEST_GIVEN_FILE = 4 * 1024 * 1024;

/**
 * The content of a file that is named on the command line or in a configuration. What is named may be anything: a FIFO would keep
 * the process waiting for a writer, deaf to signals, and /dev/zero has no end.
 *
 * @throws the system's error; an Error that says what is there in place of a file, or how large it is
 */
export function readGivenFile(path: string): Buffer {
  const fd = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  try {
    const stats = fstatSync(fd);
    // The system has words for a folder when it is read.
    if (!stats.isFile() && !stats.isDirectory()) {
      throw new Error(`it is ${stats.isFIFO() ? 'a FIFO' : 'a device'}, and a file is needed`);
    }
    if (stats.size > LARGEST_GIVEN_FILE) {
      throw new Error(`it has ${stats.size} bytes, at most ${LARGEST_GIVEN_FILE} are read`);
    }
    return readFileSync(fd);
  } finally {
    closeSync(fd);
  }
}
