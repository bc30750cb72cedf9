import { createHash } from 'node:crypto';
import { linkSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pack } from './archive.mjs';

const OCI = 'application/vnd.oci.image';

/**
 * Writes images of several architectures as one archive: an OCI layout (image-spec: oci-layout, index.json, blobs), with the
 * manifest.json of `docker save` beside it for readers that know nothing else, which get the first one.
 *
 * @param images what `buildFor` returns
 * @param name full reference with tag
 */
export function writeImage(output, { work, images, name, facts }) {
  const layout = join(work, 'layout');
  const blobs = join(layout, 'blobs/sha256');
  mkdirSync(blobs, { recursive: true });
  const blob = (content, mediaType) => {
    const bytes = Buffer.from(JSON.stringify(content));
    const hex = createHash('sha256').update(bytes).digest('hex');
    writeFileSync(join(blobs, hex), bytes);
    return { mediaType, digest: `sha256:${hex}`, size: bytes.length };
  };
  const manifests = images.map(({ arch, layers }) => {
    for (const { file, digest } of layers) linkOnce(file, blobPath(layout, digest));
    const config = blob(configOf(arch, layers, facts), `${OCI}.config.v1+json`);
    const described = layers.map(({ digest, compressedBytes }) => ({
      mediaType: `${OCI}.layer.v1.tar+gzip`,
      digest,
      size: compressedBytes,
    }));
    const manifest = { schemaVersion: 2, mediaType: `${OCI}.manifest.v1+json`, config, layers: described };
    return {
      config,
      layers,
      descriptor: { ...blob(manifest, manifest.mediaType), platform: { architecture: arch, os: 'linux' } },
    };
  });
  const tag = name.slice(name.lastIndexOf(':') + 1);
  const annotations = { 'io.containerd.image.name': name, 'org.opencontainers.image.ref.name': tag };
  const index = { schemaVersion: 2, mediaType: `${OCI}.index.v1+json` };
  const descriptors = manifests.map(({ descriptor }) => descriptor);
  // One image of several platforms has an index of its own: a name belongs to one descriptor.
  const [named] =
    descriptors.length === 1 ? descriptors : [blob({ ...index, manifests: descriptors }, index.mediaType)];
  writeJson(layout, 'oci-layout', { imageLayoutVersion: '1.0.0' });
  writeJson(layout, 'index.json', { ...index, manifests: [{ ...named, annotations }] });
  const [first] = manifests;
  const paths = first.layers.map(({ digest }) => blobPath('', digest));
  writeJson(layout, 'manifest.json', [{ Config: blobPath('', first.config.digest), RepoTags: [name], Layers: paths }]);
  pack(output, layout, facts.epoch, ['oci-layout', 'index.json', 'manifest.json', 'blobs']);
}

function configOf(arch, layers, { version, description, license, commit, created }) {
  const labels = { title: 'nodeplane', description, version, revision: commit, created, licenses: license };
  return {
    created,
    architecture: arch,
    os: 'linux',
    config: {
      Env: ['PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'],
      // No Entrypoint: kube-proxy's DaemonSet names the program itself.
      Cmd: ['/usr/local/bin/nodeplane', '--help'],
      Labels: Object.fromEntries(
        Object.entries(labels).map(([key, value]) => [`org.opencontainers.image.${key}`, value]),
      ),
    },
    rootfs: { type: 'layers', diff_ids: layers.map(({ diffId }) => diffId) },
    history: layers.map((layer) => ({ created, created_by: `deploy/image/build: ${layer.name}` })),
  };
}

function blobPath(layout, digest) {
  return join(layout, 'blobs', digest.replace(':', '/'));
}

function linkOnce(file, path) {
  try {
    linkSync(file, path);
  } catch (error) {
    if (error.code !== 'EEXIST') throw error;
  }
}

function writeJson(folder, name, content) {
  writeFileSync(join(folder, name), JSON.stringify(content));
}
