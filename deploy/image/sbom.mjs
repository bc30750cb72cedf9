/**
 * What an image is made of, as SPDX 2.3 JSON (spdx.github.io/spdx-spec/v2.3). The same contents give the same document.
 *
 * @param packages {name, version, purl, license?, supplier?, sha256?, sha512?}
 */
export function describe({ arch, facts, packages, layers }) {
  const name = `nodeplane-${facts.version}-${arch}`;
  const identified = packages.map((of) => ({
    of,
    id: `SPDXRef-${`${of.name}-${of.version}`.replace(/[^\w.-]/g, '-')}`,
  }));
  const image = 'SPDXRef-image';
  return {
    spdxVersion: 'SPDX-2.3',
    dataLicense: 'CC0-1.0',
    SPDXID: 'SPDXRef-DOCUMENT',
    name,
    documentNamespace: `urn:nodeplane:sbom:${name}:${layers.map(({ diffId }) => diffId.slice(7, 23)).join('-')}`,
    creationInfo: { created: facts.created, creators: ['Tool: nodeplane deploy/image/build'] },
    packages: [
      {
        SPDXID: image,
        name: 'nodeplane-image',
        versionInfo: facts.version,
        downloadLocation: 'NOASSERTION',
        filesAnalyzed: false,
      },
      ...identified.map(({ of, id }) => spdxPackage(of, id)),
    ],
    relationships: [
      { spdxElementId: 'SPDXRef-DOCUMENT', relationshipType: 'DESCRIBES', relatedSpdxElement: image },
      ...identified.map(({ id }) => ({ spdxElementId: image, relationshipType: 'CONTAINS', relatedSpdxElement: id })),
    ],
  };
}

function spdxPackage({ name, version, purl, license = 'NOASSERTION', supplier, sha256, sha512 }, id) {
  const checksums = [
    ...(sha256 ? [{ algorithm: 'SHA256', checksumValue: sha256 }] : []),
    ...(sha512 ? [{ algorithm: 'SHA512', checksumValue: sha512 }] : []),
  ];
  return {
    SPDXID: id,
    name,
    versionInfo: version,
    downloadLocation: 'NOASSERTION',
    filesAnalyzed: false,
    licenseDeclared: license,
    supplier: supplier ? `Organization: ${supplier}` : 'NOASSERTION',
    ...(checksums.length > 0 && { checksums }),
    externalRefs: [{ referenceCategory: 'PACKAGE-MANAGER', referenceType: 'purl', referenceLocator: purl }],
  };
}
