/**
 * How many times longer everything may take here than on a quiet machine. The VM's processors are emulated, which makes
 * what the tests do 4 to 8 times slower; the limits themselves leave room.
 */
export const PATIENCE = process.env.NODEPLANE_VM === undefined ? 1 : 4;

/** A time limit given for a quiet machine, as it is to be here. */
export function patient(milliseconds: number): number {
  return milliseconds * PATIENCE;
}
