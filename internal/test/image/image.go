// Package image writes container images from files of this machine, for nodes that can reach no registry.
package image

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"path"
	"runtime"
	"strings"
	"time"
)

// Image is one of a single layer.
type Image struct {
	Name            string // as pods name it, like localhost/shell:1
	Files           []File
	Entrypoint, Cmd []string
	User            string // root where empty
}

// File is one in an image; its folders come with it. It is a folder where its path ends in a slash, a symbolic link
// where Link is set, and a program otherwise.
type File struct {
	Path, Link string
	Body       []byte
}

// Write writes the image as a tar file in the OCI layout, which containerd, podman and Docker import.
func (m Image) Write(file string) error {
	layer, err := m.layer()
	if err != nil {
		return fmt.Errorf("write image %s: %w", m.Name, err)
	}
	type object = map[string]any
	const kind = "application/vnd.oci.image."
	blobs := []File{}
	blob := func(media string, b []byte) object {
		digest := fmt.Sprintf("%x", sha256.Sum256(b))
		blobs = append(blobs, File{Path: "blobs/sha256/" + digest, Body: b})
		return object{"mediaType": kind + media, "digest": "sha256:" + digest, "size": len(b)}
	}
	body := blob("layer.v1.tar", layer)
	config := blob("config.v1+json", marshal(object{"architecture": runtime.GOARCH, "os": "linux",
		"config": object{"Entrypoint": m.Entrypoint, "Cmd": m.Cmd, "User": m.User, "Env": []string{"PATH=/bin"}},
		"rootfs": object{"type": "layers", "diff_ids": []any{body["digest"]}}}))
	top := blob("manifest.v1+json", marshal(object{"schemaVersion": 2, "mediaType": kind + "manifest.v1+json",
		"config": config, "layers": []any{body}}))
	top["annotations"] = object{"io.containerd.image.name": m.Name}
	index := marshal(object{"schemaVersion": 2, "mediaType": kind + "index.v1+json", "manifests": []any{top}})
	whole, err := archive(append(blobs, File{Path: "oci-layout", Body: []byte(`{"imageLayoutVersion":"1.0.0"}`)},
		File{Path: "index.json", Body: index}))
	if err != nil {
		return fmt.Errorf("write image %s: %w", m.Name, err)
	}
	return os.WriteFile(file, whole, 0o644)
}

// layer is the files with what every image has: a folder for what is temporary, and names of users.
func (m Image) layer() ([]byte, error) {
	return archive(append([]File{
		{Path: "tmp/"},
		{Path: "etc/passwd", Body: []byte("root:x:0:0:root:/:/bin/sh\nuser:x:1000:1000:user:/tmp:/bin/sh\n")},
		{Path: "etc/group", Body: []byte("root:x:0:\nuser:x:1000:\n")},
	}, m.Files...))
}

func archive(files []File) ([]byte, error) {
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	there := map[string]bool{".": true}
	head := func(name string, kind byte, mode int64, size int) error {
		return w.WriteHeader(&tar.Header{Name: name, Typeflag: kind, Mode: mode, Size: int64(size),
			ModTime: time.Unix(0, 0)})
	}
	var folder func(dir string) error
	folder = func(dir string) error {
		if there[dir] {
			return nil
		}
		there[dir] = true
		if err := folder(path.Dir(dir)); err != nil {
			return err
		}
		mode := int64(0o755)
		if dir == "tmp" {
			mode = 0o1777
		}
		return head(dir+"/", tar.TypeDir, mode, 0)
	}
	for _, f := range files {
		name := strings.TrimPrefix(f.Path, "/")
		if err := folder(path.Dir(name)); err != nil {
			return nil, err
		}
		var err error
		switch {
		case strings.HasSuffix(name, "/"): // its folder is there by now
		case f.Link != "":
			err = w.WriteHeader(&tar.Header{Name: name, Typeflag: tar.TypeSymlink, Linkname: f.Link, Mode: 0o777})
		default:
			if err = head(name, tar.TypeReg, 0o755, len(f.Body)); err == nil {
				_, err = w.Write(f.Body)
			}
		}
		if err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

func marshal(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // maps and lists of strings always encode
	}
	return b
}
