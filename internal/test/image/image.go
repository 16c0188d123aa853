// Package image writes reproducible archives and container images, equal to the byte for equal input: those of a
// release, and those for test nodes, which reach no registry.
package image

import (
	"fmt"
	"os"
	"runtime"
	"time"
)

// Image is a container image for test nodes, with a single layer.
type Image struct {
	Name            string // as in pods, such as localhost/shell:1
	Files           []File
	Entrypoint, Cmd []string
	User            string // empty: root
}

// Write writes the image as a tar file in the OCI layout. Every image has a temporary folder and the names of two
// users.
func (m Image) Write(file string) error {
	files := append([]File{
		{Path: "tmp/", Mode: 0o1777},
		{Path: "etc/passwd", Body: []byte("root:x:0:0:root:/:/bin/sh\nuser:x:1000:1000:user:/tmp:/bin/sh\n")},
		{Path: "etc/group", Body: []byte("root:x:0:\nuser:x:1000:\n")},
	}, m.Files...)
	whole, err := Layout{Files: files, Arch: runtime.GOARCH, When: time.Unix(0, 0).UTC(),
		Config:      Object{"Entrypoint": m.Entrypoint, "Cmd": m.Cmd, "User": m.User, "Env": []string{"PATH=/bin"}},
		Annotations: Object{"io.containerd.image.name": m.Name}}.Bytes()
	if err != nil {
		return fmt.Errorf("write image %s: %w", m.Name, err)
	}
	return os.WriteFile(file, whole, 0o644)
}
