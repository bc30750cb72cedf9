/**
 * Of <sysexits.h>: the command line cannot be used; nobody is there to ask; a defect of ours, or of the machine; the
 * output cannot be written.
 */
export const EX_USAGE = 64;
export const EX_UNAVAILABLE = 69;
export const EX_SOFTWARE = 70;
export const EX_IOERR = 74;
