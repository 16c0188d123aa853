package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"scrimp/internal/test/image"
)

// imageUser is the user that serves in a container; it owns only /data.
const imageUser = 65532

// image returns a container image as a tar file in the OCI layout, which podman, skopeo, crane and Docker 25 load.
func (p parts) image() ([]byte, error) {
	files := []image.File{
		{Path: "usr/bin/scrimp", Body: p.binary, Mode: 0o755},
		{Path: "etc/passwd", Body: fmt.Appendf(nil, "root:x:0:0:root:/:/sbin/nologin\n"+
			"scrimp:x:%d:%d:scrimp:/data:/sbin/nologin\n", imageUser, imageUser)},
		{Path: "data/", Mode: 0o700, Owner: imageUser},
		{Path: "tmp/", Mode: 0o1777},
	}
	certs, err := os.ReadFile(p.Certs)
	switch {
	case err == nil:
		files = append(files, image.File{Path: "etc/ssl/certs/ca-certificates.crt", Body: certs})
	case !errors.Is(err, fs.ErrNotExist):
		return nil, err
	}
	created := p.When.Format(time.RFC3339)
	tag := strings.ReplaceAll(p.Version, "+", "-")
	return image.Layout{Files: files, Arch: p.arch, When: p.When, Compress: true,
		Config: image.Object{"User": fmt.Sprintf("%d:%d", imageUser, imageUser),
			"Entrypoint": []string{"/usr/bin/scrimp", "serve"},
			"Env":        []string{"PATH=/usr/bin", "SCRIMP_DATA=/data", "HOME=/data"}, "WorkingDir": "/data",
			"Volumes": image.Object{"/data": image.Object{}}, "ExposedPorts": image.Object{"7077/tcp": image.Object{}},
			"Labels": image.Object{"org.opencontainers.image.title": "scrimp", "org.opencontainers.image.version": p.Version,
				"org.opencontainers.image.licenses": "Apache-2.0"}},
		History:     []any{image.Object{"created": created, "created_by": "hack/dist"}},
		Annotations: image.Object{"org.opencontainers.image.ref.name": tag, "io.containerd.image.name": "scrimp:" + tag},
	}.Bytes()
}

func sortByName(list []image.File) {
	slices.SortFunc(list, func(a, b image.File) int { return strings.Compare(a.Path, b.Path) })
}
