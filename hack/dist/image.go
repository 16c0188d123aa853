package main

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"
)

// imageUser is who serves in a container; it owns /data and nothing else.
const imageUser = 65532

// image is a container image as a tar file in the OCI layout, which podman, skopeo, crane and Docker 25 load.
func (p parts) image() ([]byte, error) {
	files := []entry{
		{name: "usr/bin/scrimp", body: p.binary, mode: 0o755},
		{name: "etc/passwd", body: fmt.Appendf(nil, "root:x:0:0:root:/:/sbin/nologin\n"+
			"scrimp:x:%d:%d:scrimp:/data:/sbin/nologin\n", imageUser, imageUser)},
		{name: "data/", mode: 0o700, owner: imageUser},
		{name: "tmp/", mode: 0o1777},
	}
	certs, err := os.ReadFile(p.Certs)
	switch {
	case err == nil:
		files = append(files, entry{name: "etc/ssl/certs/ca-certificates.crt", body: certs})
	case !errors.Is(err, fs.ErrNotExist):
		return nil, err
	}
	whole, err := tarball(files, "", p.When)
	if err != nil {
		return nil, err
	}
	layer, err := compress(whole)
	if err != nil {
		return nil, err
	}
	type object = map[string]any
	created := p.When.Format(time.RFC3339)
	config := marshal(object{"created": created, "architecture": p.arch, "os": "linux",
		"config": object{"User": fmt.Sprintf("%d:%d", imageUser, imageUser),
			"Entrypoint": []string{"/usr/bin/scrimp", "serve"},
			"Env":        []string{"PATH=/usr/bin", "SCRIMP_DATA=/data", "HOME=/data"}, "WorkingDir": "/data",
			"Volumes": object{"/data": object{}}, "ExposedPorts": object{"7077/tcp": object{}},
			"Labels": object{"org.opencontainers.image.title": "scrimp", "org.opencontainers.image.version": p.Version,
				"org.opencontainers.image.licenses": "Apache-2.0"}},
		"rootfs":  object{"type": "layers", "diff_ids": []string{digest(whole)}},
		"history": []any{object{"created": created, "created_by": "hack/dist"}}})
	const kind = "application/vnd.oci.image."
	part := func(media string, b []byte) object {
		return object{"mediaType": kind + media, "digest": digest(b), "size": len(b)}
	}
	manifest := marshal(object{"schemaVersion": 2, "mediaType": kind + "manifest.v1+json",
		"config": part("config.v1+json", config), "layers": []any{part("layer.v1.tar+gzip", layer)}})
	top := part("manifest.v1+json", manifest)
	top["platform"] = object{"os": "linux", "architecture": p.arch}
	tag := strings.ReplaceAll(p.Version, "+", "-")
	top["annotations"] = object{"org.opencontainers.image.ref.name": tag, "io.containerd.image.name": "scrimp:" + tag}
	list := []entry{{name: "oci-layout", body: []byte(`{"imageLayoutVersion":"1.0.0"}`)},
		{name: "index.json", body: marshal(object{"schemaVersion": 2, "mediaType": kind + "index.v1+json",
			"manifests": []any{top}})}}
	for _, b := range [][]byte{config, layer, manifest} {
		list = append(list, entry{name: "blobs/" + strings.Replace(digest(b), ":", "/", 1), body: b})
	}
	return tarball(list, "", p.When)
}

func digest(b []byte) string { return fmt.Sprintf("sha256:%x", sha256.Sum256(b)) }

func marshal(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // maps and lists of strings always encode
	}
	return b
}

func sortByName(list []entry) {
	slices.SortFunc(list, func(a, b entry) int { return strings.Compare(a.name, b.name) })
}
