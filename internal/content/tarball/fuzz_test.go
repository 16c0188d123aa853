package tarball_test

import (
	"archive/tar"
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"scrimp/internal/content/tarball"
	"scrimp/internal/test/must"
)

// No tar file makes anything appear or change outside the folder into which it is unpacked.
func FuzzUnpack(f *testing.F) {
	for _, list := range [][]tar.Header{
		{{Name: "a/b", Mode: 0o644, Size: 2}, {Name: "c", Typeflag: tar.TypeSymlink, Linkname: "a/b"}},
		{{Name: "../outside/file", Size: 2}}, {{Name: "/abs", Size: 2}},
		{{Name: "l", Typeflag: tar.TypeSymlink, Linkname: "../outside"}, {Name: "l/file", Size: 2}},
		{{Name: "h", Typeflag: tar.TypeLink, Linkname: "../outside/file"}}, {{Name: "d", Typeflag: tar.TypeBlock}},
		{{Name: "d", Typeflag: tar.TypeDir, Mode: 0o4777}, {Name: "d", Size: 2}},
	} {
		var b bytes.Buffer
		w := tar.NewWriter(&b)
		for _, h := range list {
			_ = w.WriteHeader(&h)
			_, _ = w.Write([]byte("hi")[:h.Size])
		}
		_ = w.Close()
		f.Add(b.Bytes())
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		top := t.TempDir()
		in, out := filepath.Join(top, "in"), filepath.Join(top, "outside")
		for _, dir := range []string{in, out} {
			must.Do(t, os.Mkdir(dir, 0o700))
		}
		must.Do(t, os.WriteFile(filepath.Join(out, "file"), []byte("mine"), 0o600))
		_ = tarball.Unpack(t.Context(), bytes.NewReader(text), in) // what it unpacked is where it may be
		above, _ := os.ReadDir(top)
		beside, _ := os.ReadDir(out)
		if b, err := os.ReadFile(filepath.Join(out, "file")); err != nil || string(b) != "mine" || len(above) != 2 || len(beside) != 1 {
			t.Errorf("outside are %v and %v with %q, %v", above, beside, b, err)
		}
	})
}
