package format

import (
	"bytes"
	"io/fs"
	"strings"
	"testing"

	"scrimp/internal/test/must"
)

func sample() Manifest {
	sum := strings.Repeat("ab", 32)
	return Manifest{
		Form: Version, Name: "000003-000017", Meta: Meta{Job: "j", Epoch: 3, Step: 12}, Session: 1, Bytes: 5,
		Files: []File{
			{Path: "a", Mode: fs.ModeDir | 0o755},
			{Path: "a/f", Mode: 0o644, Size: 5, Parts: []Part{{Sum: sum, Size: 5, Home: "000003-000001"}}},
			{Path: "l", Mode: fs.ModeSymlink | 0o777, Target: "a/f"},
		},
	}
}

// Nothing in a manifest can lead out of the folder, or to objects other than its parts.
func TestDecode_RefusesInvalidManifests(t *testing.T) {
	t.Parallel()
	must.Do(t, sample().check("000003-000017"))
	for what, spoil := range map[string]func(*Manifest){
		"name":             func(m *Manifest) { m.Name = "000003-000018" },
		"epoch":            func(m *Manifest) { m.Epoch = 4 },
		"form":             func(m *Manifest) { m.Form = 2 },
		"path above":       func(m *Manifest) { m.Files[0].Path = "../a" },
		"absolute path":    func(m *Manifest) { m.Files[0].Path = "/a" },
		"unclean path":     func(m *Manifest) { m.Files[1].Path = "a//f" },
		"order":            func(m *Manifest) { m.Files[0], m.Files[2] = m.Files[2], m.Files[0] },
		"twice":            func(m *Manifest) { m.Files[0] = m.Files[1] },
		"no folder":        func(m *Manifest) { m.Files = m.Files[1:] },
		"through a link":   func(m *Manifest) { m.Files[0] = File{Path: "a", Mode: fs.ModeSymlink, Target: "b"} },
		"link out":         func(m *Manifest) { m.Files[2].Target = "../x" },
		"absolute link":    func(m *Manifest) { m.Files[2].Target = "/etc/passwd" },
		"empty link":       func(m *Manifest) { m.Files[2].Target = "" },
		"device":           func(m *Manifest) { m.Files[1].Mode = fs.ModeDevice },
		"sum of bytes":     func(m *Manifest) { m.Bytes = 6 },
		"sum of parts":     func(m *Manifest) { m.Files[1].Size = 6; m.Bytes = 6 },
		"part's hash":      func(m *Manifest) { m.Files[1].Parts[0].Sum = "../x" },
		"part's home":      func(m *Manifest) { m.Files[1].Parts[0].Home = "../../other" },
		"part's size":      func(m *Manifest) { m.Files[1].Parts[0].Size = -5; m.Files[1].Size = -5; m.Bytes = -5 },
		"folder's content": func(m *Manifest) { m.Files[0].Size, m.Files[0].Parts = 5, m.Files[1].Parts; m.Bytes = 10 },
	} {
		m := sample()
		spoil(&m)
		if err := m.check("000003-000017"); err == nil {
			t.Errorf("%s: accepted", what)
		}
	}
}

// Unseal finds any change of a sealed manifest, even of one bit.
func FuzzUnseal(f *testing.F) {
	sealed, err := Seal(sample())
	must.Do(f, err)
	f.Add(uint32(0), byte(0), uint32(0))
	f.Add(uint32(17), byte(1), uint32(0))
	f.Add(uint32(len(sealed)-1), byte(0x20), uint32(0))
	f.Add(uint32(0), byte(0), uint32(1))
	f.Add(uint32(0), byte(0), uint32(66))
	f.Fuzz(func(t *testing.T, at uint32, flip byte, short uint32) {
		data := bytes.Clone(sealed)
		data[int(at)%len(data)] ^= flip
		data = data[:len(data)-int(short)%len(data)]
		_, err := Decode("000003-000017", data)
		if same := bytes.Equal(data, sealed); same != (err == nil) {
			t.Fatalf("same bytes: %v, but decoded: %v", same, err)
		}
	})
}

// FuzzDecode checks that arbitrary bytes never panic, and that an accepted manifest stays inside.
func FuzzDecode(f *testing.F) {
	sealed, err := Seal(sample())
	must.Do(f, err)
	f.Add(sealed)
	f.Add([]byte("{}\nsha256 \n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if m, err := Decode("000003-000017", data); err == nil && m.check("000003-000017") != nil {
			t.Fatal("accepted what does not hold")
		}
	})
}

// Names sort by their counts and parse back, also beyond six digits.
func TestNameOf_SortsAndParses(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		ok   bool
	}{{"000001-000002", true}, {"1234567-000002", true}, {"1-2", false}, {"000001-00000x", false}, {"-00001-000002", false}, {"000001", false}, {"", false}} {
		if _, _, ok := ParseName(c.name); ok != c.ok {
			t.Errorf("%q: %v", c.name, ok)
		}
	}
	if CompareNames("1000000-000001", "999999-000002") <= 0 || CompareNames("000001-000002", "000001-000010") >= 0 {
		t.Error("order")
	}
}
