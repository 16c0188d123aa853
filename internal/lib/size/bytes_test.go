package size_test

import (
	"fmt"
	"math"
	"math/big"
	"strings"
	"testing"

	"pgregory.net/rapid"

	_ "scrimp/internal/test/sameseed"

	"scrimp/internal/lib/size"
)

func TestParse(t *testing.T) {
	for in, want := range map[string]size.Bytes{
		"0B": 0, "1B": 1, "80GiB": 80 * size.GiB, "500MB": 500 * size.MB, "1.5TiB": 3 * size.TiB / 2,
		" 2 KiB ": 2048, "1kB": 1000, "1KB": 1000, "1.1MB": 1_100_000, "0.3GB": 300_000_000,
		"0.0001KB": 0, "9007199254740993B": 9007199254740993, // a float64 would lose the last byte
		"4611686018427387903B": 1<<62 - 1,
	} {
		b, err := size.Parse(in)
		if err != nil || b != want {
			t.Errorf("Parse(%q) = %d, %v, want %d", in, b, err, want)
		}
	}
	for _, in := range []string{
		"", "B", "GiB", "80", "80Gib", "80 GiB GiB", "-1GB", "-0B", "+1GB", "1e3GB", "0x1p3GB", "NaNGB", "InfGB",
		"1_000GB", ".GB", ".5GB", "5.GB",
		"1.2.3GB", "4611686018427387904B", "99999999999999999999TiB", strings.Repeat("1", 1_000_000) + "B", "١GB",
	} {
		b, err := size.Parse(in)
		if err == nil {
			t.Errorf("Parse(%.30q) = %d", in, b)
		} else if len(err.Error()) > 300 {
			t.Errorf("Parse of %d bytes repeats them in its error", len(in))
		}
	}
}

func TestString(t *testing.T) {
	for b, want := range map[size.Bytes]string{
		0: "0B", 1023: "1023B", 1024: "1KiB", 1536: "1.5KiB", 80 * size.GiB: "80GiB", size.MiB - 1: "1023.999KiB",
		12345 * size.TiB: "12345TiB", -5: "-5B", 500 * size.MB: "476.837MiB", math.MaxInt64: "8388607.999TiB",
	} {
		if got := b.String(); got != want {
			t.Errorf("%d prints as %q, want %q", int64(b), got, want)
		}
	}
}

func TestParse_ReadsWhatStringWrites(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := size.Bytes(rapid.Int64Range(0, 1<<62-1).Draw(t, "bytes"))
		b >>= rapid.UintRange(0, 61).Draw(t, "shift")
		back, err := size.Parse(b.String())
		if err != nil || back > b || float64(b-back) > float64(b)/1000+1 {
			t.Fatalf("%d prints as %s, which reads as %d, %v: never above, never short by more than 0.1 %% and the part of a byte", int64(b),
				b, int64(back), err)
		}
		whole := size.Bytes(rapid.Int64Range(1, 1023).Draw(t, "whole")) * size.GiB
		if back, err := size.Parse(whole.String()); err != nil || back != whole {
			t.Fatalf("%s reads as %d, %v: whole units are exact", whole, int64(back), err)
		}
	})
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"80GiB", "1.5TB", "0B", "-1B", "NaNB", "1e3kB", "4611686018427387903B"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		b, err := size.Parse(s)
		if err != nil {
			return
		}
		number := strings.TrimSpace(strings.TrimRight(strings.TrimSpace(s), "TGMKkiB"))
		unit := map[string]size.Bytes{
			"B": 1, "kB": size.KB, "KB": size.KB, "MB": size.MB, "GB": size.GB, "TB": size.TB,
			"KiB": size.KiB, "MiB": size.MiB, "GiB": size.GiB, "TiB": size.TiB,
		}[strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(s), number))]
		twin, ok := new(big.Rat).SetString(number)
		if !ok {
			t.Fatalf("Parse(%q) = %d, but %q is not a number", s, b, number)
		}
		twin.Mul(twin, new(big.Rat).SetInt64(int64(unit)))
		if want := new(big.Int).Quo(twin.Num(), twin.Denom()); want.Cmp(big.NewInt(int64(b))) != 0 {
			t.Fatalf("Parse(%q) = %d, want %v", s, b, want)
		}
	})
}

func ExampleParse() {
	b, _ := size.Parse("1.5GiB")
	fmt.Println(int64(b), b, 500*size.MB)
	// Output: 1610612736 1.5GiB 476.837MiB
}

func TestAbout_HasThreeDigits(t *testing.T) {
	for bytes, want := range map[float64]string{0: "0B", 999: "999B", 1023: "1KiB", 1536: "1.5KiB", 332439: "325KiB",
		1.684 * (1 << 30): "1.68GiB", 80 << 30: "80GiB", 23.54 * (1 << 30): "23.5GiB", 5 << 40: "5TiB"} {
		if got := size.About(bytes); got != want {
			t.Errorf("%g bytes are %s, want %s", bytes, got, want)
		}
	}
}
