/** Versions of the CNI specification this plugin speaks, oldest first: all of them. */
export const SUPPORTED_VERSIONS = ['0.1.0', '0.2.0', '0.3.0', '0.3.1', '0.4.0', '1.0.0', '1.1.0'] as const;

export type CniVersion = (typeof SUPPORTED_VERSIONS)[number];

export const NEWEST_VERSION = '1.1.0' satisfies CniVersion;

/** Membership is exact, as in the reference library: "1.2.0" is not served because "1.1.0" is. */
export function isSupported(version: string): version is CniVersion {
  return (SUPPORTED_VERSIONS as readonly string[]).includes(version);
}

/** Whether `version` is `other` or newer. */
export function atLeast(version: CniVersion, other: CniVersion): boolean {
  return SUPPORTED_VERSIONS.indexOf(version) >= SUPPORTED_VERSIONS.indexOf(other);
}
