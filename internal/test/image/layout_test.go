package image_test

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"scrimp/internal/test/image"
	"scrimp/internal/test/must"
)

// TestLayout_NamesEachBlobByItsDigest reads an image back with and without compression: every blob has the digest that
// its name says, the layer has the files with their modes, and the same image written twice has the same bytes.
func TestLayout_NamesEachBlobByItsDigest(t *testing.T) {
	for _, compress := range []bool{false, true} {
		l := image.Layout{Arch: "amd64", When: time.Unix(1e9, 0), Compress: compress,
			Config: image.Object{"Cmd": []string{"/bin/a"}}, Annotations: image.Object{"name": "a:1"},
			Files: []image.File{{Path: "/bin/a", Body: []byte("a"), Mode: 0o755}, {Path: "b/c/", Owner: 7},
				{Path: "/bin/link", Link: "a"}}}
		first, err := l.Bytes()
		must.Do(t, err)
		if second, err := l.Bytes(); err != nil || !bytes.Equal(first, second) {
			t.Errorf("two images of equal input differ, or %v", err)
		}
		blobs := 0
		for name, body := range entries(t, first) {
			digest, blob := strings.CutPrefix(name, "blobs/sha256/")
			if !blob || strings.HasSuffix(name, "/") {
				continue
			}
			blobs++
			if "sha256:"+digest != image.Digest(body) {
				t.Errorf("%s has the digest %s", name, image.Digest(body))
			}
		}
		if blobs != 3 {
			t.Errorf("the image has %d blobs, want a layer, a configuration and a manifest", blobs)
		}
	}
}

func TestTar_WritesFoldersFirstWithModesAndOwners(t *testing.T) {
	b, err := image.Tar([]image.File{{Path: "/bin/a", Body: []byte("a"), Mode: 0o755}, {Path: "b/c/", Owner: 7},
		{Path: "/bin/link", Link: "a"}, {Path: "bin/a", Body: []byte("later")}}, "top/", time.Unix(1e9, 0))
	must.Do(t, err)
	var got []string
	r := tar.NewReader(bytes.NewReader(b))
	for {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		must.Do(t, err)
		body, _ := io.ReadAll(r)
		got = append(got, h.FileInfo().Mode().String()+" "+h.Name+" "+h.Linkname+string(body)+h.Uname)
	}
	want := "drwxr-xr-x top/b/ root\ndrwxr-xr-x top/b/c/ \ndrwxr-xr-x top/bin/ root\n-rw-r--r-- top/bin/a laterroot\n" +
		"Lrwxrwxrwx top/bin/link aroot"
	if s := strings.Join(got, "\n"); s != want {
		t.Errorf("the archive has\n%s\nwant\n%s", s, want)
	}
}

// entries returns the bodies of an archive's entries by path.
func entries(t *testing.T, b []byte) map[string][]byte {
	t.Helper()
	all := map[string][]byte{}
	for r := tar.NewReader(bytes.NewReader(b)); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return all
		}
		must.Do(t, err)
		if all[h.Name], err = io.ReadAll(r); err != nil {
			t.Fatal(err)
		}
	}
}
