package image

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// Object is a JSON object.
type Object = map[string]any

// Layout describes a container image with one layer. Bytes writes it as a tar file in the OCI image layout, which
// containerd, podman, skopeo and Docker 25 load.
type Layout struct {
	Files       []File
	Arch        string // as in GOARCH
	Config      Object // what a container runs, in the terms of the image specification
	Annotations Object // names and tags of the image
	When        time.Time
	History     []any // of the layers; may be empty
	Compress    bool  // compress the layer with gzip
}

// Bytes returns the image. Equal input gives equal bytes.
func (l Layout) Bytes() ([]byte, error) {
	whole, err := Tar(l.Files, "", l.When)
	if err != nil {
		return nil, err
	}
	layer, kind := whole, "layer.v1.tar"
	if l.Compress {
		if layer, err = Gzip(whole); err != nil {
			return nil, err
		}
		kind += "+gzip"
	}
	var files []File
	part := func(media string, b []byte) Object {
		files = append(files, File{Path: "blobs/" + strings.Replace(Digest(b), ":", "/", 1), Body: b})
		return Object{"mediaType": mediaType(media), "digest": Digest(b), "size": len(b)}
	}
	config := Object{"created": l.When.Format(time.RFC3339), "architecture": l.Arch, "os": "linux", "config": l.Config,
		"rootfs": Object{"type": "layers", "diff_ids": []string{Digest(whole)}}}
	if len(l.History) > 0 {
		config["history"] = l.History
	}
	manifest := part("manifest.v1+json", marshal(Object{"schemaVersion": 2, "mediaType": mediaType("manifest.v1+json"),
		"config": part("config.v1+json", marshal(config)), "layers": []any{part(kind, layer)}}))
	manifest["platform"] = Object{"os": "linux", "architecture": l.Arch}
	manifest["annotations"] = l.Annotations
	files = append(files, File{Path: "oci-layout", Body: []byte(`{"imageLayoutVersion":"1.0.0"}`)},
		File{Path: "index.json", Body: marshal(Object{"schemaVersion": 2, "mediaType": mediaType("index.v1+json"),
			"manifests": []any{manifest}})})
	return Tar(files, "", l.When)
}

func mediaType(of string) string { return "application/vnd.oci.image." + of }

// Digest returns the digest of b in the notation of image manifests.
func Digest(b []byte) string { return fmt.Sprintf("sha256:%x", sha256.Sum256(b)) }

func marshal(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // maps and lists of strings always encode
	}
	return b
}
