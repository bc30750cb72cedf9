/** Of <sysexits.h>: the command line cannot be used; nobody is there to ask; a defect of ours, or of the machine. */
export const EX_USAGE = 64;
export const EX_UNAVAILABLE = 69;
export const EX_SOFTWARE = 70;
