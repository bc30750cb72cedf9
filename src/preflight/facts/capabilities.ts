import { needCapability } from '../../sys/index.ts';

/**
 * Refuses a process that may not change packet rules. It may not read them either: without this it would take what is there for
 * nothing.
 *
 * @param isGranted whether this process has CAP_NET_ADMIN. @default it looks
 * @throws ERR_CONFIG without it
 */
export function needNetAdmin(isGranted?: boolean): void {
  const granted = isGranted === undefined ? undefined : new Set(isGranted ? (['NET_ADMIN'] as const) : []);
  needCapability('NET_ADMIN', 'change packet rules', granted);
}
